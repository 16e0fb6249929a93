"""What the published policies have in common: the room of a node, and what a pod takes of it."""

from typing import Final

import msgspec
import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import Filter
from alnair.scheduler.plugins.node_resources_fit.plugin import NodeResourcesFit
from alnair.scheduler.published import MIB_PER_MILLI
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows, of_rows
from alnair.traces.openb import WHOLE


class ResourcesFit:
    """The filter of `NodeResourcesFit` without its score."""

    name = "NodeResourcesFit"
    compares_requests = True

    def __init__(self) -> None:
        self._fit = NodeResourcesFit()

    def filter(self, spec: PodSpec, cluster: Cluster) -> Filter | None:
        """Compile the filter."""
        return self._fit.filter(spec, cluster)


#: What is added to scores: far more than they fall below 0 on nodes larger than the paper's.
_LIFT: Final = 2.0**20


class Ask(msgspec.Struct, frozen=True):
    """What a pod takes of a node: cores, and `gpus` GPUs with `milli` thousandths of each."""

    cpu_milli: int
    gpus: int = 0
    milli: int = 0

    @classmethod
    def of(cls, spec: PodSpec) -> "Ask":
        """Return what a class asks for."""
        cpu = dict(spec.requests).get("cpu", 0)
        demand = spec.gpu
        if demand is None:
            return cls(cpu)
        if demand.whole:
            return cls(cpu, demand.whole, WHOLE)
        return cls(cpu, 1, demand.memory_mib // MIB_PER_MILLI)

    @property
    def gpu_milli(self) -> int:
        """Milli-GPUs in all."""
        return self.gpus * self.milli


class FreeResources:
    """Free cores and thousandths of GPUs."""

    def __init__(self, cluster: Cluster) -> None:
        self._columns = cluster.columns
        self._devices = cluster.devices
        self._cpu = cluster.columns.resource("cpu")

    def cpu_left(self, rows: Rows) -> Column:
        """Return the free millicores of each row."""
        left: Column = self._columns.free[self._cpu][rows]
        return left

    def milli_left(self, rows: Rows) -> Column:
        """Return what is free of each GPU, shape (GPUs per node, rows); 0 where there is none."""
        left: Column = np.maximum(of_rows(self._devices.slice_memory, rows), 0.0)
        left *= 1.0 / MIB_PER_MILLI
        return left

    def gpu_left(self, rows: Rows) -> Column:
        """Return the free milli-GPUs of each row."""
        total: Column = self.milli_left(rows).sum(axis=0)
        return total


def lifted(score: Column) -> Column:
    """Return scores in the same order, none below 0: what is below would be no node at all."""
    found: Column = np.maximum(score + _LIFT, 0.0)
    return found

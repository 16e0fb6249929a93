"""What the published policies have in common: the room of a node, and what a pod takes of it."""

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.columns import Column, Rows
from alnair.scheduler.framework import Cluster, Filter
from alnair.scheduler.plugins.fit import NodeResourcesFit
from alnair.scheduler.published import MIB_PER_MILLI

WHOLE = 1000.0


class ResourcesFit:
    """The filter of `NodeResourcesFit` without its score."""

    name = "NodeResourcesFit"

    def __init__(self) -> None:
        self._fit = NodeResourcesFit()

    def filter(self, spec: PodSpec, cluster: Cluster) -> Filter | None:
        """Compile the filter."""
        return self._fit.filter(spec, cluster)


class Room:
    """Free cores and thousandths of GPUs, and what one class of pods asks of them.

    Attributes:
        cpu_milli: that a pod asks for.
        milli: of each GPU that it asks for.
        gpus: how many.
    """

    def __init__(self, spec: PodSpec, cluster: Cluster) -> None:
        self.cpu_milli = float(dict(spec.requests).get("cpu", 0))
        demand = spec.gpu
        self.gpus = 0 if demand is None else max(demand.whole, 1)
        self.milli = 0.0
        if demand is not None:
            self.milli = WHOLE if demand.whole else demand.memory_mib / MIB_PER_MILLI
        self._columns = cluster.columns
        self._devices = cluster.devices
        self._cpu = cluster.columns.resource("cpu")

    @property
    def gpu_milli(self) -> float:
        """Milli-GPUs that a pod asks for in all."""
        return self.gpus * self.milli

    def cpu_left(self, rows: Rows) -> Column:
        """Return the free millicores of each row."""
        left: Column = self._columns.free[self._cpu, rows]
        return left

    def milli_left(self, rows: Rows) -> Column:
        """Return what is free of each GPU, shape (GPUs per node, rows); 0 where there is none."""
        left: Column = np.maximum(self._devices.slice_memory[:, rows], 0.0)
        left *= 1.0 / MIB_PER_MILLI
        return left

    def gpu_left(self, rows: Rows) -> Column:
        """Return the free milli-GPUs of each row."""
        total: Column = self.milli_left(rows).sum(axis=0)
        return total

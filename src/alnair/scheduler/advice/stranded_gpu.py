"""Stranded GPU: how much of what is free no pod of the workload mix could use, in columns.

F of a node is its free GPU less what a pod drawn from the mix could use there, on average. Source:
Weng et al., *Beware of Fragmentation*, USENIX ATC'23; `alnair.scheduler.published.fragmentation` is
the same in plain Python. A GPU counts with the part that is free of its memory and of its compute,
whichever is less; whole, it is of use only while it has no tenants.
"""

import msgspec
import numpy as np

from alnair.model.workload import GpuDemand
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.gpu_room import accepted
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows


class PodClass(msgspec.Struct, frozen=True):
    """Pods alike in what GPUs they can use; `share` is their part of the mix (0-1)."""

    share: float
    cpu_milli: int
    whole: int
    memory_mib: int
    compute: int
    models: tuple[str, ...] = ()
    models_not: tuple[str, ...] = ()


class _Gpus(msgspec.Struct, frozen=True):
    """GPUs of some rows, (GPUs per node, rows) each, and the free millicores of each row."""

    memory: Column
    compute: Column
    free: Mask
    left: Column
    cpu: Column


class _Ask(msgspec.Struct, frozen=True):
    """What pods of some classes ask of GPUs, whatever their cores."""

    whole: int
    memory_mib: int
    compute: int
    models: tuple[str, ...]
    models_not: tuple[str, ...]

    @property
    def wanted(self) -> int:
        """GPUs that must be of use for one such pod."""
        return self.whole + bool(self.memory_mib)


class Stranded:
    """Evaluates F for a mix.

    Args:
        classes: of the mix.
        cluster: its state.
    """

    def __init__(self, classes: tuple[PodClass, ...], cluster: Cluster) -> None:
        self._asks: dict[_Ask, list[tuple[float, int]]] = {}
        for one in classes:
            ask = _Ask(one.whole, one.memory_mib, one.compute, one.models, one.models_not)
            self._asks.setdefault(ask, []).append((one.share, one.cpu_milli))
        self._cluster = cluster
        self._cpu = cluster.columns.resource("cpu")

    def of(self, rows: Rows) -> Column:
        """Return F of each row, in GPUs."""
        gpus = self._gpus(rows)
        lost: Column = gpus.left.sum(axis=0)
        for ask, parts in self._asks.items():
            large = self._large(ask, gpus, rows)
            lost -= _share(parts, gpus.cpu) * _usable(ask, large, gpus.left)
        return lost

    def _gpus(self, rows: Rows) -> _Gpus:
        devices = self._cluster.devices
        memory, compute = devices.slice_memory[:, rows], devices.compute_free[:, rows]
        cpu = self._cluster.columns.free[self._cpu, rows]
        return _Gpus(
            memory, compute, devices.free_mask(rows), self._left(memory, compute, rows), cpu
        )

    def _left(self, memory: Column, compute: Column, rows: Rows) -> Column:
        total = np.maximum(self._cluster.devices.memory[:, rows], 1.0)
        left: Column = np.minimum(memory / total, compute / 100.0).clip(0.0, 1.0)
        return left

    def _large(self, ask: _Ask, gpus: _Gpus, rows: Rows) -> Mask:
        """Return the GPUs that are of use: open, large enough, of an accepted model."""
        if ask.whole:
            large = gpus.free.copy()
        else:
            large = (gpus.memory >= ask.memory_mib) & (gpus.compute >= ask.compute)
        demand = GpuDemand(models=ask.models, models_not=ask.models_not)
        if demand.restricts_models:
            large &= accepted(demand, self._cluster.devices, rows)
        return large


def _share(parts: list[tuple[float, int]], cpu: Column) -> Column:
    """Return the part of the mix for whose pods of one ask there are cores enough."""
    found = np.zeros_like(cpu)
    for share, cpu_milli in parts:
        found += share * (cpu >= cpu_milli)
    return found


def _usable(ask: _Ask, large: Mask, left: Column) -> Column:
    found: Column = (left * large).sum(axis=0) * (large.sum(axis=0) >= ask.wanted)
    return found

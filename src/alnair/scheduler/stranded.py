"""Stranded GPU: how much of what is free no pod of the workload mix could use, in columns.

F of a node is its free GPU less what a pod drawn from the mix could use there, on average. Source:
Weng et al., *Beware of Fragmentation*, USENIX ATC'23; `alnair.model.fragmentation` is the same in
plain Python. A GPU counts with the part that is free of its memory and of its compute, whichever is
less; whole, it is of use only while it has no tenants.
"""

import msgspec
import numpy as np

from alnair.model.workload import GpuDemand
from alnair.scheduler.columns import Column, Mask, Rows
from alnair.scheduler.framework import Cluster
from alnair.scheduler.gpu_room import accepted, slice_fits
from alnair.scheduler.workload_mix import PodClass


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

    def gain_of_slice(self, demand: GpuDemand, cpu_milli: int, rows: Rows) -> Column:
        """Return by how much F falls with a slice on each GPU, in GPUs.

        Returns:
            The shape (GPUs per node, rows); of no meaning where the slice does not fit.
        """
        gpus = self._gpus(rows)
        memory, compute = gpus.memory - demand.memory_mib, gpus.compute - demand.compute
        left = self._left(memory, compute, rows)
        after = _Gpus(memory, compute, np.zeros_like(gpus.free), left, gpus.cpu - cpu_milli)
        gain: Column = gpus.left - left  # what is free becomes less by this
        for ask, parts in self._asks.items():
            large, still = self._large(ask, gpus, rows), self._large(ask, after, rows)
            useful = gpus.left * large
            change = left * still
            change -= useful
            change += useful.sum(axis=0)
            # The one GPU may be what makes them enough.
            spare = large.sum(axis=0) - ask.wanted
            change *= (spare > 0) | ((spare == 0) & (still >= large))
            change *= _share(parts, after.cpu)
            gain += change
            gain -= _share(parts, gpus.cpu) * _usable(ask, large, gpus.left)
        return gain

    def gain_of_whole(self, demand: GpuDemand, cpu_milli: int, rows: Rows) -> Column:
        """Return by how much F falls with whole GPUs taken, in GPUs; which ones makes no matter.

        Returns:
            The shape (rows,); of no meaning where there are too few.
        """
        gpus = self._gpus(rows)
        usable = gpus.free & accepted(demand, self._cluster.devices, rows)
        taken = usable & (np.cumsum(usable, axis=0) <= demand.whole)
        gain: Column = (gpus.left * taken).sum(axis=0)
        for ask, parts in self._asks.items():
            large = self._large(ask, gpus, rows)
            gain -= _share(parts, gpus.cpu) * _usable(ask, large, gpus.left)
            large &= ~taken
            gain += _share(parts, gpus.cpu - cpu_milli) * _usable(ask, large, gpus.left)
        return gain

    def fits(self, demand: GpuDemand, rows: Rows) -> Mask:
        """Return which GPUs have room for the slice."""
        return slice_fits(demand, self._cluster.devices, rows)

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
        if demand.choosy:
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

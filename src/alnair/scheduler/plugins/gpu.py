"""GpuShare: whole GPUs and slices of one GPU, on one device table.

`NodeResourcesFit` compares node totals; this plugin decides on devices: a slice lies on a single
GPU, whole GPUs are free ones, and both may be limited to GPU models.
"""

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import GpuDemand, PodSpec
from alnair.scheduler.arguments import Arguments
from alnair.scheduler.columns import Mask, Rows
from alnair.scheduler.devices import Booking, Devices
from alnair.scheduler.framework import Cluster, Depends, Reason, Refusal

NO_GPU = Reason("node(s) describe no GPUs", unresolvable=True)
WRONG_MODEL = Reason("node(s) have no GPU of an accepted model", unresolvable=True)
NO_SLICE = Reason("node(s) have no single GPU with enough free memory and compute")
NO_WHOLE = Reason("node(s) have too few free whole GPUs")

#: Which GPU of a node takes a slice: the fullest that has room, or the emptiest.
Choice = Literal["tightest", "emptiest"]


class GpuShareArguments(Arguments, frozen=True):
    """Arguments of GpuShare: which GPU of a node takes a slice."""

    choice: Choice = "tightest"


class GpuShare:
    """Filters nodes by their GPUs, and reserves GPUs on the chosen node."""

    name = "GpuShare"
    Args = GpuShareArguments

    def __init__(self, arguments: GpuShareArguments | None = None) -> None:
        self.choice = (arguments or GpuShareArguments()).choice

    def pre_filter(self, spec: PodSpec) -> Refusal | None:
        """Refuse demands that no GPU could satisfy."""
        problem = spec.gpu.problem if spec.gpu else ""
        return Refusal(self.name, problem) if problem else None

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Room | None":
        """Compile the filter."""
        return _Room(spec.gpu, cluster.devices) if spec.gpu else None

    def reserve(self, spec: PodSpec, row: int, cluster: Cluster) -> tuple[Booking, ...] | None:
        """Choose GPUs: the slice's first, then the lowest free ones for whole use."""
        demand = spec.gpu
        if demand is None:
            return ()
        devices = cluster.devices
        bookings: list[Booking] = []
        free = devices.free_slots(row) & _models(demand, devices, slice(row, row + 1))[:, 0]
        if demand.memory_mib:
            fits = _slice_fits(demand, devices, slice(row, row + 1))[:, 0]
            slot = self._slot(demand, devices, row, fits, free)
            if slot is None:
                return None
            free[slot] = False
            bookings.append(Booking(slot, demand.memory_mib, demand.compute, demand.hard))
        if demand.whole:
            slots = np.flatnonzero(free)[: demand.whole]
            if len(slots) < demand.whole:
                return None
            bookings += [Booking(int(slot), whole=True) for slot in slots]
        return tuple(bookings)

    def _slot(
        self, demand: GpuDemand, devices: Devices, row: int, fits: Mask, free: Mask
    ) -> int | None:
        slots = np.flatnonzero(fits)
        if demand.whole and free.sum() <= demand.whole:
            slots = np.flatnonzero(fits & ~free)  # the free ones are needed whole
        if not len(slots):
            return None
        compute, memory = devices.compute_free[slots, row], devices.slice_memory[slots, row]
        order = np.lexsort((slots, memory, compute))
        if self.choice == "emptiest":
            order = np.lexsort((slots, -memory, -compute))
        return int(slots[order[0]])


class _Room:
    depends = Depends.BOOKED

    def __init__(self, demand: GpuDemand, devices: Devices) -> None:
        self._demand = demand
        self._devices = devices

    def __call__(self, rows: Rows) -> Mask:
        demand, devices = self._demand, self._devices
        if not demand.memory_mib and not demand.models:
            return devices.whole_free[rows] >= demand.whole
        if not demand.whole:
            return _any(_slice_fits(demand, devices, rows))
        free = devices.free_mask(rows) & _models(demand, devices, rows)
        count: NDArray[np.intp] = free.sum(axis=0)
        enough: Mask = count >= demand.whole
        if not demand.memory_mib:
            return enough
        fits = _slice_fits(demand, devices, rows)
        # Beside the whole ones there is a GPU in use with room, or a free one to spare.
        return (_any(fits & ~free) & enough) | (_any(fits) & (count > demand.whole))

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        devices = self._devices
        none = ~_any(devices.model[:, rows] >= 0)
        yield NO_GPU, none
        wrong = ~_any(_models(self._demand, devices, rows)) & ~none
        yield WRONG_MODEL, wrong
        refused = ~self(rows) & ~none & ~wrong
        yield NO_SLICE if self._demand.memory_mib else NO_WHOLE, refused


def _any(gpus: Mask) -> Mask:
    """Return for which rows any GPU is marked; `gpus` has the shape (GPUs per node, rows)."""
    found: Mask = np.logical_or.reduce(gpus, axis=0)
    return found


def _slice_fits(demand: GpuDemand, devices: Devices, rows: Rows) -> Mask:
    """Return which GPUs have room for the slice, shape (GPUs per node, rows)."""
    fits: Mask = devices.slice_memory[:, rows] >= demand.memory_mib
    if demand.compute:
        fits &= devices.compute_free[:, rows] >= demand.compute
        # Unless soft shares are over-allocated, what is free in all bounds what is free for hard
        # ones.
        if demand.hard and devices.soft:
            fits &= devices.hard_free[:, rows] >= demand.compute
    if demand.models:
        fits &= _models(demand, devices, rows)
    return fits


def _models(demand: GpuDemand, devices: Devices, rows: Rows) -> Mask:
    models: NDArray[np.int32] = devices.model[:, rows]
    if not demand.models:
        return models >= 0
    return np.isin(models, [devices.models[m] for m in demand.models if m in devices.models])

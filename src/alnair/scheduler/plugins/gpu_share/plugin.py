"""GpuShare: whole GPUs and slices of one GPU, on one device table.

`NodeResourcesFit` compares node totals; this plugin decides on devices: a slice lies on a single
GPU, whole GPUs are free ones, and both may be limited to GPU models.
"""

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import GpuDemand, PodSpec
from alnair.scheduler.framework.arguments import Arguments
from alnair.scheduler.framework.extension_points import Depends, Reason, Refusal
from alnair.scheduler.plugins.gpu_share.gpu_choice import Choice, near_gpus, slice_slot, whole_slots
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import Booking, Devices
from alnair.scheduler.state.gpus.gpu_room import Amount, accepted, any_gpu, most, slice_fits
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows

NO_GPU = Reason("node(s) describe no GPUs", unresolvable=True)
WRONG_MODEL = Reason("node(s) have no GPU of an accepted model", unresolvable=True)
UNHEALTHY = Reason("node(s) have too few healthy GPUs", unresolvable=True)
NO_SLICE = Reason("node(s) have no single GPU with enough free memory and compute")
NO_WHOLE = Reason("node(s) have too few free whole GPUs")
NO_HEALTHY = Reason("node(s) have no room on their healthy GPUs")


class GpuShareArguments(Arguments, frozen=True):
    """Arguments of GpuShare: which GPUs of a node a pod gets."""

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

    def needs(self, spec: PodSpec) -> Iterable[tuple[Hashable, float]]:
        """Return free whole GPUs, and the largest slice's memory and compute, by models."""
        demand = spec.gpu
        if demand is None:
            return
        models = (demand.models, demand.models_not)
        if demand.whole:
            yield Amount("whole", *models), demand.whole
        if demand.memory_mib:
            yield Amount("memory", *models), demand.memory_mib
            yield Amount("compute", *models), demand.compute

    def amount(self, what: Hashable, rows: Rows, cluster: Cluster) -> Column:
        """Return how much of it each row has on GPUs of these models."""
        assert isinstance(what, Amount)
        return most(what, cluster.devices, rows)

    def reserve(
        self, spec: PodSpec, row: int, cluster: Cluster, gpu_scores: Column | None = None
    ) -> tuple[Booking, ...] | None:
        """Choose GPUs: the slice's first, then the best-connected free ones for whole use."""
        demand = spec.gpu
        if demand is None:
            return ()
        devices = cluster.devices
        one = slice(row, row + 1)
        free = devices.free_slots(row)
        if demand.restricts_models:
            free &= accepted(demand, devices, one)[:, 0]
        near = near_gpus(spec, row, cluster)
        bookings: list[Booking] = []
        if demand.memory_mib:
            fits = slice_fits(demand, devices, one)[:, 0]
            if gpu_scores is not None:
                fits &= gpu_scores >= 0
            slot = slice_slot(demand, devices, row, fits, free, near, self.choice, gpu_scores)
            if slot is None:
                return None
            free[slot] = False
            bookings.append(Booking(slot, demand.memory_mib, demand.compute, demand.soft))
        if demand.whole:
            slots = whole_slots(demand, devices, row, free, near, self.choice)
            if slots is None:
                return None
            bookings += [Booking(slot, whole=True) for slot in slots]
        return tuple(bookings)


class _Room:
    depends = Depends.BOOKED

    def __init__(self, demand: GpuDemand, devices: Devices) -> None:
        self._demand = demand
        self._devices = devices

    def __call__(self, rows: Rows) -> Mask:
        demand, devices = self._demand, self._devices
        if not demand.memory_mib and not demand.restricts_models:
            return devices.whole_free[rows] >= demand.whole
        if not demand.whole:
            return any_gpu(slice_fits(demand, devices, rows))
        free = devices.free_mask(rows) & accepted(demand, devices, rows)
        count: NDArray[np.intp] = free.sum(axis=0)
        enough: Mask = count >= demand.whole
        if not demand.memory_mib:
            return enough
        fits = slice_fits(demand, devices, rows)
        # Beside the whole ones there is a GPU in use with room, or a free one to spare.
        return (any_gpu(fits & ~free) & enough) | (any_gpu(fits) & (count > demand.whole))

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        demand, devices = self._demand, self._devices
        never = devices.count[rows] == 0
        yield NO_GPU, never
        if demand.restricts_models:
            wrong = ~any_gpu(accepted(demand, devices, rows)) & ~never
            yield WRONG_MODEL, wrong
            never = never | wrong
        refused = ~self(rows) & ~never
        if not devices.has_unhealthy:
            yield NO_SLICE if demand.memory_mib else NO_WHOLE, refused
            return
        usable = accepted(demand, devices, rows)
        unhealthy = usable & devices.unhealthy[:, rows]
        some = refused & any_gpu(unhealthy)
        # Beside whole GPUs, a slice takes one more.
        wanted = demand.whole + bool(demand.memory_mib)
        few = some & ((usable & ~unhealthy).sum(axis=0) < wanted)
        yield UNHEALTHY, few
        yield NO_HEALTHY, some & ~few
        yield NO_SLICE if demand.memory_mib else NO_WHOLE, refused & ~some

"""Which GPUs have room for what a pod asks, on the device table.

Masks have the shape (GPUs per node, rows).
"""

from collections.abc import Iterable
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import GpuDemand
from alnair.scheduler.state.gpus.devices import CLOSED, Devices
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows, of_rows


class Amount(msgspec.Struct, frozen=True):
    """What a node has most of: free whole GPUs, or memory or compute that one GPU has for a slice.

    Only GPUs of these models count, as `GpuDemand` names them.
    """

    what: Literal["whole", "memory", "compute"]
    models: tuple[str, ...] = ()
    models_not: tuple[str, ...] = ()


def most(amount: Amount, devices: Devices, rows: Rows) -> Column:
    """Return how much of it each row has, shape (rows,); below 0 if not even a closed GPU."""
    demand = GpuDemand(models=amount.models, models_not=amount.models_not)
    if amount.what == "whole":
        if not demand.restricts_models:
            return of_rows(devices.whole_free, rows)
        free = devices.free_mask(rows) & accepted(demand, devices, rows)
        count: Column = free.sum(axis=0).astype(float)
        return count
    memory = of_rows(devices.slice_memory, rows)
    there = memory if amount.what == "memory" else of_rows(devices.compute_free, rows)
    there = np.where(memory > CLOSED, there, CLOSED)
    if demand.restricts_models:
        there = np.where(accepted(demand, devices, rows), there, CLOSED)
    found: Column = there.max(axis=0, initial=CLOSED)
    return found


def any_gpu(gpus: Mask) -> Mask:
    """Return for which rows any GPU is marked."""
    found: Mask = np.logical_or.reduce(gpus, axis=0)
    return found


def slice_fits(demand: GpuDemand, devices: Devices, rows: Rows) -> Mask:
    """Return which GPUs have room for the slice."""
    fits: Mask = of_rows(devices.slice_memory, rows) >= demand.memory_mib
    if demand.compute:
        fits &= of_rows(devices.compute_free, rows) >= demand.compute
        # Unless soft shares are over-allocated, what is free in all bounds what is free for hard
        # ones.
        if not demand.soft and devices.has_soft_factor:
            fits &= of_rows(devices.hard_free, rows) >= demand.compute
    if demand.restricts_models:
        fits &= accepted(demand, devices, rows)
    return fits


def accepted(demand: GpuDemand, devices: Devices, rows: Rows) -> Mask:
    """Return which GPUs are of a model that the pod accepts."""
    models: NDArray[np.int32] = of_rows(devices.model, rows)
    if not demand.restricts_models:
        present: Mask = models >= 0
        return present
    # By model, and last for -1, where there is no GPU: many times faster than looking for each.
    will_do = np.full(len(devices.models) + 1, not demand.models)
    will_do[_known(demand.models, devices)] = True
    will_do[_known(demand.models_not, devices)] = False
    will_do[-1] = False
    found: Mask = will_do.take(models)
    return found


def _known(models: Iterable[str], devices: Devices) -> list[int]:
    return [devices.models[m] for m in models if m in devices.models]

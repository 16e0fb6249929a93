"""A node's score as that of the GPUs that the pod would get there."""

from collections.abc import Callable
from typing import Final

import numpy as np

from alnair.model.workload import GpuDemand
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.state.gpus.devices import Devices
from alnair.scheduler.state.gpus.gpu_room import accepted, slice_fits
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows

#: Scores of GPUs, shape (GPUs per node, rows), 0-100; below 0 where the pod must not go.
GpuScores = Callable[[Rows], Column]

_NEVER: Final = -1.0


class BestGpu:
    """The best GPU with room for the slice, or the mean of those that may be had whole."""

    depends = Depends.BOOKED

    def __init__(self, demand: GpuDemand, devices: Devices, scores: GpuScores) -> None:
        self._demand = demand
        self._devices = devices
        self._scores = scores
        self.normalize: Normalize | None = min_max

    def __call__(self, rows: Rows) -> Column:
        """Return the raw score of each row."""
        scores = self._scores(rows)
        if not scores.size:
            return np.zeros(scores.shape[1])
        demand, devices = self._demand, self._devices
        if demand.memory_mib:
            fits = slice_fits(demand, devices, rows)
            best: Column = np.where(fits, scores, _NEVER).max(axis=0, initial=0.0)
            return best
        free = devices.free_mask(rows) & accepted(demand, devices, rows)
        total = np.where(free, np.maximum(scores, 0.0), 0.0).sum(axis=0)
        mean: Column = total / np.maximum(free.sum(axis=0), 1)
        return mean


def min_max(raw: Column, feasible: Mask) -> Column:
    """Return 100 for the most of a feasible row and 0 for the least, in integers; 0 if alike."""
    among = raw[feasible]
    if not among.size:
        return np.zeros_like(raw)
    low, high = among.min(), among.max()
    if high <= low:
        return np.zeros_like(raw)
    scores: Column = np.clip(np.floor((raw - low) * 100.0 / (high - low)), 0.0, 100.0)
    return scores

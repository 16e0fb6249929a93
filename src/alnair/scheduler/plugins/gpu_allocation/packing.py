"""Scores that fill GPUs and nodes in use before they open others."""

from typing import Final

import numpy as np

from alnair.model.workload import GpuDemand
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.framework.score_weights import PARTS
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import LEVELS, Devices
from alnair.scheduler.state.gpus.gpu_room import slice_fits
from alnair.scheduler.state.nodes.columns import Column, Rows, of_rows, single

# What counts, the first thing most: whether no free GPU is opened for a slice, whether no idle node
# is, how tight the slice is on its GPU, how few whole GPUs are left free on the node, and how many
# pods are there. Each is worth more than all that follow.
_PODS: Final = 31.0
_LEFT: Final = 31.0
_PER_GPU_LEFT: Final = _PODS + 1.0
#: Tightness in tenths of a GPU: finer, it would scatter slices over nodes.
_TENTHS: Final = 10.0
_PER_TENTH: Final = _PER_GPU_LEFT * (_LEFT + 1.0)
_NOT_IDLE: Final = _PER_TENTH * (_TENTHS + 1.0)
_NOT_OPENED: Final = 2.0 * _NOT_IDLE
_PODS_ROW: Final = 2  # the columns of resources begin with cpu, memory, pods


class PackedGpus:
    """For pods with GPUs.

    Of two nodes alike in their GPUs the one with more pods is taken, since the other will be free
    sooner: it waits for fewer to end.
    """

    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, demand: GpuDemand, cluster: Cluster, *, smallest_first: bool) -> None:
        self._demand = demand
        self._devices, self._columns = cluster.devices, cluster.columns
        self._whole = float(demand.whole)
        self._shares = bool(demand.memory_mib)
        self._smallest_first = smallest_first

    def __call__(self, rows: Rows) -> Column:
        """Return 0-64 for each row."""
        devices, columns = self._devices, self._columns
        if (row := single(rows)) is not None and not self._shares:
            return np.array([self._of(row)])
        free = of_rows(devices.whole_free, rows)
        left = free - self._whole
        score: Column = np.zeros(free.shape)
        if self._shares:
            levels = of_rows(devices.cell, rows) % (LEVELS + 1)
            fits = slice_fits(self._demand, devices, rows)
            # A node whose GPUs do not fit is refused by the filter, whatever it scores.
            least = np.where(fits, levels, LEVELS).min(axis=0, initial=LEVELS)
            opened = least >= LEVELS
            left -= opened
            score += np.where(opened, 0.0, _NOT_OPENED)
            score += (_TENTHS - np.ceil(least * (_TENTHS / LEVELS))) * _PER_TENTH
        idle = free == of_rows(devices.count, rows)
        if not self._smallest_first:
            left *= ~idle
        score += (_LEFT - np.clip(left, 0.0, _LEFT)) * _PER_GPU_LEFT
        score += np.where(idle, 0.0, _NOT_IDLE)
        pods = of_rows(columns.allocatable[_PODS_ROW], rows) - of_rows(
            columns.free[_PODS_ROW], rows
        )
        score += np.clip(pods, 0.0, _PODS)
        score /= PARTS
        return score

    def _of(self, row: int) -> float:
        """Return the score of one row: in plain numbers, since arrays of one are slow."""
        devices, columns = self._devices, self._columns
        free = devices.whole_free.item(row)
        idle = free == devices.count.item(row)
        left = 0.0 if idle and not self._smallest_first else free - self._whole
        pods = columns.allocatable.item(_PODS_ROW, row) - columns.free.item(_PODS_ROW, row)
        score = (_LEFT - min(max(left, 0.0), _LEFT)) * _PER_GPU_LEFT
        score += (0.0 if idle else _NOT_IDLE) + min(max(pods, 0.0), _PODS)
        return score / PARTS


class PackedWithoutGpus:
    """For pods without GPUs: nodes without free GPUs come first, and idle ones last.

    The cores of a node whose GPUs are taken are of no use to others, and those of a node with free
    GPUs are. All of this is less than a point.
    """

    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def __call__(self, rows: Rows) -> Column:
        """Return less than a point for each row."""
        devices = self._devices
        if (row := single(rows)) is not None:
            unused = devices.whole_free.item(row)
            idle = 0.0 < unused == devices.count.item(row)
            return np.array([(15.0 - min(unused, 15.0) + (0.0 if idle else 16.0)) / PARTS])
        free = of_rows(devices.whole_free, rows)
        score: Column = 15.0 - np.minimum(free, 15.0)
        score += 16.0 * ((free == 0) | (free != of_rows(devices.count, rows)))
        score /= PARTS
        return score

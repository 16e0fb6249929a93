"""Scores that fill GPUs and nodes in use before they open others."""

from typing import Final

import numpy as np

from alnair.model.workload import GpuDemand
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.framework.score_weights import PARTS
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import LEVELS, Devices
from alnair.scheduler.state.gpus.gpu_room import slice_fits
from alnair.scheduler.state.nodes.changed_rows import Renewal
from alnair.scheduler.state.nodes.columns import Column, Rows, of_rows, single

# What counts, the first thing most: whether no free GPU is opened for a slice, whether no idle node
# is, how tight the slice is on its GPU, how few whole GPUs are free on the node, and how many pods
# are there. Each is worth more than all that follow. In points.
_MOST_PODS: Final = 31.0
_MOST_FREE: Final = 31.0
_POD: Final = 1.0 / PARTS
_TAKEN_GPU: Final = _POD * (_MOST_PODS + 1.0)
#: Tightness counts in tenths of a GPU: finer, it would scatter slices over nodes.
_TENTHS: Final = 10
_TENTH: Final = _TAKEN_GPU * (_MOST_FREE + 1.0)
_NOT_IDLE: Final = _TENTH * (_TENTHS + 1.0)
_NOT_OPENED: Final = 2.0 * _NOT_IDLE
#: What a GPU is worth to a slice that it has room for, by its level.
_WORTH: Final = np.array(
    [_NOT_OPENED + (_TENTHS - -(-level * _TENTHS // LEVELS)) * _TENTH for level in range(LEVELS)]
    + [0.0]
)


class NodesInUse:
    """How much each node is in use, for all classes alike.

    Args:
        cluster: its state.
        smallest_first: of idle nodes, those with fewer GPUs come first.

    Attributes:
        score: (rows,), for pods with GPUs: the node is not idle, few of its GPUs are free, it has
            many pods. Of two nodes alike in their GPUs the one with more pods is taken, since the
            other will be free sooner: it waits for fewer to end.
        score_without: (rows,), less than a point, for pods without GPUs: nodes without free GPUs
            come first, and idle ones last. The cores of a node whose GPUs are taken are of no use
            to others, and those of a node with free GPUs are.
    """

    def __init__(self, cluster: Cluster, *, smallest_first: bool) -> None:
        self.cluster = cluster
        self._smallest_first = smallest_first
        self._renewal = Renewal(cluster.columns)
        self.score: Column = np.zeros(0)
        self.score_without: Column = np.zeros(0)

    def refresh(self) -> None:
        """Bring both columns up to date."""
        rows = self._renewal.due()
        if rows is None:
            return
        if (row := single(rows)) is not None and row < self.score.size:
            self.score[row], self.score_without[row] = self.of(row), self.of_without(row)
            return
        n = self.cluster.columns.n
        if self.score.size != n:
            self.score, self.score_without = np.zeros(n), np.zeros(n)
            rows = slice(0, n)
        devices = self.cluster.devices
        free = of_rows(devices.whole_free, rows)
        idle = free == of_rows(devices.count, rows)
        counted = free if self._smallest_first else np.where(idle, 0.0, free)
        self.score[rows] = (
            np.where(idle, 0.0, _NOT_IDLE)
            + (_MOST_FREE - np.minimum(counted, _MOST_FREE)) * _TAKEN_GPU
            + np.minimum(self.cluster.columns.pods(rows), _MOST_PODS) * _POD
        )
        not_idle = (free == 0.0) | ~idle
        self.score_without[rows] = (15.0 - np.minimum(free, 15.0) + 16.0 * not_idle) / PARTS

    # One row as it is now, in plain numbers, since arrays of one are slow: what most decisions ask.

    def of(self, row: int) -> float:
        """Return the score of a row for pods with GPUs."""
        devices = self.cluster.devices
        free = devices.whole_free.item(row)
        idle = free == devices.count.item(row)
        counted = 0.0 if idle and not self._smallest_first else min(free, _MOST_FREE)
        score = 0.0 if idle else _NOT_IDLE
        score += (_MOST_FREE - counted) * _TAKEN_GPU
        return score + min(self.cluster.columns.pods_on(row), _MOST_PODS) * _POD

    def of_without(self, row: int) -> float:
        """Return the score of a row for pods without GPUs."""
        free = self.cluster.devices.whole_free.item(row)
        if not free:
            return 31.0 / PARTS
        not_idle = free != self.cluster.devices.count.item(row)
        return (15.0 - min(free, 15.0) + 16.0 * not_idle) / PARTS


class PackedGpus:
    """For pods with GPUs."""

    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, demand: GpuDemand, devices: Devices, nodes: NodesInUse) -> None:
        self._demand = demand
        self._devices = devices
        self._nodes = nodes
        self._shares = bool(demand.memory_mib)

    def __call__(self, rows: Rows) -> Column:
        """Return 0-44 for each row."""
        score: Column
        if (row := single(rows)) is not None:
            score = np.array([self._nodes.of(row)])
        else:
            self._nodes.refresh()
            score = of_rows(self._nodes.score, rows)
        if not self._shares:
            return score
        levels = of_rows(self._devices.cell, rows) % (LEVELS + 1)
        worth = _WORTH.take(levels)
        worth *= slice_fits(self._demand, self._devices, rows)
        best: Column = np.maximum.reduce(worth, axis=0, initial=0.0)
        best += score
        return best


class PackedWithoutGpus:
    """For pods without GPUs."""

    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, nodes: NodesInUse) -> None:
        self._nodes = nodes

    def __call__(self, rows: Rows) -> Column:
        """Return less than a point for each row."""
        if (row := single(rows)) is not None:
            return np.array([self._nodes.of_without(row)])
        self._nodes.refresh()
        score: Column = of_rows(self._nodes.score_without, rows)
        return score

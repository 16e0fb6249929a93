"""Scores that go where the smallest part of the GPUs is in use, as booked and as measured."""

from typing import Final

import numpy as np

from alnair.model.workload import GpuDemand
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.framework.score_weights import PARTS
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import LEVELS
from alnair.scheduler.state.gpus.gpu_room import slice_fits
from alnair.scheduler.state.nodes.columns import Column, Rows, of_rows

#: Parts of a GPU are counted in these: whole numbers, whose sums are exact in any order.
_UNITS: Final = 2.0 * LEVELS
#: Steps of the part of a node that is left; what follows it decides within a step.
_STEPS: Final = 8000.0
_EIGHTHS: Final = 8.0


def in_use(cluster: Cluster, rows: Rows) -> Column:
    """Return the part of each GPU that is in use, in units, shape (GPUs per node, rows).

    Booked and measured use count half each; where nothing is measured, what is booked counts alone.
    """
    devices, loads = cluster.devices, cluster.loads
    free = of_rows(devices.cell, rows) % (LEVELS + 1)
    used: Column = np.where(of_rows(devices.model, rows) >= 0, float(LEVELS) - free, 0.0)
    if not loads.any:
        return 2.0 * used
    util = loads.expected_util(rows)
    measured = np.round(np.clip(util, 0.0, 100.0) * (LEVELS / 100.0))
    used += np.where(util >= 0, measured, used)
    return used


class EmptiestGpu:
    """Scores of GPUs: how little of each is in use."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __call__(self, rows: Rows) -> Column:
        """Return 0-100, shape (GPUs per node, rows)."""
        return 100.0 - in_use(self._cluster, rows) * (100.0 / _UNITS)


class SpreadGpus:
    """For pods with GPUs: the part of the node's GPUs that would be left, then the emptiest GPU."""

    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, demand: GpuDemand, cluster: Cluster) -> None:
        self._demand = demand
        self._cluster = cluster

    def __call__(self, rows: Rows) -> Column:
        """Return 0-64 for each row."""
        demand, devices = self._demand, self._cluster.devices
        used = in_use(self._cluster, rows)
        total = used.sum(axis=0) + demand.whole * _UNITS
        if demand.memory_mib:
            memory = of_rows(devices.memory, rows).max(axis=0, initial=0.0)
            part = np.maximum(demand.memory_mib / np.maximum(memory, 1.0), demand.compute / 100.0)
            total += np.minimum(part, 1.0) * _UNITS
        there = np.maximum(of_rows(devices.count, rows), 1.0) * _UNITS
        left = np.maximum(there - total, 0.0) / there
        score: Column = np.floor(left * _STEPS + 1e-6) * _EIGHTHS
        score *= of_rows(devices.count, rows) > 0
        if demand.memory_mib:
            fits = slice_fits(demand, devices, rows)
            best = np.where(fits, _UNITS - used, 0.0).max(axis=0, initial=0.0)
            score += np.floor(best * ((_EIGHTHS - 1.0) / _UNITS) + 1e-6)
        score /= PARTS
        return score

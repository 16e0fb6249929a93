"""Random: any node that will do, and for a share any of its GPUs."""

from collections.abc import Callable

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.gpu_room import slice_fits
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows


class PublishedRandom:
    """Scores one feasible node higher than the others.

    Args:
        draw: returns a random number from 0 up to below its argument.
    """

    name = "PublishedRandom"

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Drawn":
        """Compile the score."""
        return _Drawn(self._draw)

    def gpus(self, spec: PodSpec, cluster: Cluster) -> Callable[[Rows], Column] | None:
        """Compile the scores of GPUs."""
        demand, draw = spec.gpu, self._draw
        if demand is None or demand.whole:
            return None

        def scores(rows: Rows) -> Column:
            fits = slice_fits(demand, cluster.devices, rows)
            found = np.zeros(fits.shape)
            for column in range(fits.shape[1]):
                slots = np.flatnonzero(fits[:, column])
                if slots.size:
                    found[slots[draw(slots.size)], column] = 100.0
            return found

        return scores


class _Drawn:
    #: So that it is asked anew for every pod: what is drawn must not be kept for the class.
    depends = Depends.PODS
    normalize: Normalize | None = None

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw

    def over(self, feasible: Mask) -> Column:
        """Return 100 for one of the rows that will do, 0 for the others."""
        found = np.zeros(feasible.size)
        rows = np.flatnonzero(feasible)
        if rows.size:
            found[rows[self._draw(rows.size)]] = 100.0
        return found

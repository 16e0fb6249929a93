"""BestFit: the node with the least cores and GPUs left."""

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.published import LARGEST_CPU, LARGEST_GPU
from alnair.scheduler.published.free_resources import Ask, FreeResources, lifted
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows


class PublishedBestFit:
    """Scores 100 less the mean share of the largest node that is left."""

    name = "PublishedBestFit"

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Left":
        """Compile the score."""
        return _Left(spec, cluster)


class _Left:
    depends = Depends.BOOKED
    # The original stretches the scores to 0-100, which changes no order: they are integers of a
    # range that is not wider.
    normalize: Normalize | None = None

    def __init__(self, spec: PodSpec, cluster: Cluster) -> None:
        self._ask = Ask.of(spec)
        self._room = FreeResources(cluster)

    def __call__(self, rows: Rows) -> Column:
        ask, room = self._ask, self._room
        # In the order of the original, since the last bit decides what an integer is.
        left = (room.cpu_left(rows) - ask.cpu_milli) / LARGEST_CPU * 0.5
        left += (room.gpu_left(rows) - ask.gpu_milli) / LARGEST_GPU * 0.5
        return lifted(np.trunc((1.0 - left) * 100.0))

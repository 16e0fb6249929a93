"""DotProd: the node whose free resources are least like what the pod asks for (Tetris, turned)."""

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.published import LARGEST_CPU, LARGEST_GPU
from alnair.scheduler.published.free_resources import Ask, FreeResources, lifted
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows


class PublishedDotProd:
    """Scores 100 less half the dot product of free and asked, each a share of the largest node."""

    name = "PublishedDotProd"

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Unlike":
        """Compile the score."""
        return _Unlike(spec, cluster)


class _Unlike:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, spec: PodSpec, cluster: Cluster) -> None:
        self._ask = Ask.of(spec)
        self._room = FreeResources(cluster)

    def __call__(self, rows: Rows) -> Column:
        ask, room = self._ask, self._room
        # In the order of the original, since the last bit decides what an integer is.
        product = room.cpu_left(rows) / LARGEST_CPU * (ask.cpu_milli / LARGEST_CPU)
        product += room.gpu_left(rows) / LARGEST_GPU * (ask.gpu_milli / LARGEST_GPU)
        return lifted(np.trunc(100.0 * (1.0 - product / 2.0)))

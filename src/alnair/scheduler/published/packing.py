"""Packing: a GPU in use before a free GPU of a node in use before a free node."""

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.published.free_resources import Ask, FreeResources
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows
from alnair.traces.openb import WHOLE

#: Scores of the three cases: at most, and at least.
_IN_USE = (100.0, 50.0)
_USED_NODE = (50.0, 33.0)
_FREE_NODE = 33.0


class PublishedPacking:
    """Scores pods with GPUs; others go to the first node."""

    name = "PublishedPacking"

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Packed | None":
        """Compile the score."""
        return _Packed(spec, cluster) if spec.gpu else None


class _Packed:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, spec: PodSpec, cluster: Cluster) -> None:
        self._ask = Ask.of(spec)
        self._room = FreeResources(cluster)
        self._devices = cluster.devices

    def __call__(self, rows: Rows) -> Column:
        ask, room = self._ask, self._room
        left = room.milli_left(rows)
        free = (left == WHOLE).sum(axis=0)
        whole_node = np.maximum(_FREE_NODE - free, free)
        score = np.full_like(whole_node, max(_USED_NODE[0] - ask.gpus, _USED_NODE[1]))
        if ask.milli < WHOLE:
            tightest = np.where(left >= ask.milli, left, WHOLE).min(axis=0, initial=WHOLE)
            in_use = np.maximum(_IN_USE[0] - np.floor(np.floor(tightest / 10.0) / 10.0), _IN_USE[1])
            score = np.where(tightest < WHOLE, in_use, score)
        found: Column = np.where(free == self._devices.count[rows], whole_node, score)
        return found

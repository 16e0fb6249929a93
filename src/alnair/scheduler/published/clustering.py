"""Clustering: pods that ask for as many GPUs keep each other company."""

from typing import Final

import numpy as np

from alnair.model.workload import LabelSelector, PodSpec, Requirement
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.published import LARGEST_GPU
from alnair.scheduler.published.free_resources import FreeResources, lifted
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows
from alnair.scheduler.state.pods.pod_index import PodQuery

#: Label of pods by what they ask of GPUs: `share`, or how many whole ones.
LABEL: Final = "gpus"


def company(spec: PodSpec) -> str:
    """Return what a pod's label says; empty without GPUs."""
    if spec.gpu is None:
        return ""
    return str(spec.gpu.whole) if spec.gpu.whole else "share"


class PublishedClustering:
    """Scores pods with GPUs; others go to the first node."""

    name = "PublishedClustering"

    def __init__(self) -> None:
        # A kind that is on some node was compiled before.
        self._kinds: set[str] = set()

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Company | None":
        """Compile the score."""
        if spec.gpu is None:
            return None
        self._kinds.add(company(spec))
        return _Company(spec, cluster, self._kinds)


class _Company:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, spec: PodSpec, cluster: Cluster, kinds: set[str]) -> None:
        self._room = FreeResources(cluster)
        self._pods = cluster.pods
        self._own = company(spec)
        self._kinds = kinds

    def __call__(self, rows: Rows) -> Column:
        own = self._there(self._own, rows)
        others = np.zeros_like(own)
        for kind in self._kinds - {self._own}:
            others |= self._there(kind, rows)
        # 75 beside its own kind alone, 50 beside others too, 25 on an empty node, 0 beside others.
        base = np.where(own, np.where(others, 50.0, 75.0), np.where(others, 0.0, 25.0))
        used = LARGEST_GPU - self._room.gpu_left(rows)
        return lifted(base + np.trunc(25.0 * used / LARGEST_GPU))

    def _there(self, kind: str, rows: Rows) -> "np.typing.NDArray[np.bool_]":
        selector = LabelSelector((Requirement(LABEL, "In", (kind,)),))
        there: np.typing.NDArray[np.bool_] = self._pods.counts(PodQuery(None, selector))[rows] > 0
        return there

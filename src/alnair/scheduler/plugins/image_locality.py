"""ImageLocality: nodes that have the pod's images already start it sooner.

Source of formulas: `pkg/scheduler/framework/plugins/imagelocality` of Kubernetes. An image counts
with its size times the part of the nodes that have it, so that the first node which pulled an image
does not draw all pods of a job. Sums up to 23 MiB score 0, and 1000 MiB per container 100.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.arguments import Arguments
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows
from alnair.scheduler.state.nodes.node_images import image_kind

_MIB: Final = 1024 * 1024
_LEAST: Final = 23 * _MIB
_MOST_PER_CONTAINER: Final = 1000 * _MIB


class ImageLocalityArguments(Arguments, frozen=True):
    """Arguments of ImageLocality.

    Attributes:
        gpu_nodes_in_order: nodes with GPUs score 0, so that they are filled in their order.
    """

    gpu_nodes_in_order: bool = False


class ImageLocality:
    """Scores by the images that are there."""

    name = "ImageLocality"
    Args = ImageLocalityArguments

    def __init__(self, arguments: ImageLocalityArguments | None = None) -> None:
        self._in_order = (arguments or ImageLocalityArguments()).gpu_nodes_in_order

    def kinds(self, spec: PodSpec) -> Sequence[str]:
        """Return what this reads: how many nodes there are, and who has the pod's images."""
        return ("Node", *map(image_kind, spec.images)) if spec.images else ()

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Images | None":
        """Compile the score."""
        size = cluster.columns.alive.size
        if all(cluster.images.sizes(name, size) is None for name in spec.images):
            return None
        return _Images(spec, cluster, in_order=self._in_order)


class _Images:
    depends = Depends.NODE
    normalize: Normalize | None = None

    def __init__(self, spec: PodSpec, cluster: Cluster, *, in_order: bool) -> None:
        self._names = spec.images
        self._most = _MOST_PER_CONTAINER * spec.image_containers
        self._cluster = cluster
        self._in_order = in_order
        self._scores: Column = np.zeros(0)
        self._epoch = -1

    def __call__(self, rows: Rows) -> Column:
        columns = self._cluster.columns
        if self._epoch != columns.epoch:  # otherwise changes of images compile this anew
            self._epoch = columns.epoch
            self._scores = self._all()
        scores: Column = self._scores[rows]
        if self._in_order:
            scores = scores * (self._cluster.devices.count[rows] == 0)
        return scores

    def _all(self) -> Column:
        columns, images = self._cluster.columns, self._cluster.images
        total = np.zeros(columns.alive.size)
        if self._most <= _LEAST:
            return total  # it has no containers
        for name in self._names:
            sizes = images.sizes(name, total.size)
            if sizes is not None:
                spread = np.count_nonzero(sizes) / len(columns)
                total += np.floor(sizes * spread)
        total = np.clip(total, _LEAST, self._most)
        return np.floor(100.0 * (total - _LEAST) / (self._most - _LEAST))

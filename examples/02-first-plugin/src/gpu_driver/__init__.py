"""GpuDriver: GPU pods go to nodes whose driver is new enough, and rather to newer ones.

The driver's major version is the node label `example.com/gpu-driver`, such as `550`.
"""

from collections.abc import Iterable

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework import (
    Arguments,
    Cluster,
    Column,
    Depends,
    Mask,
    Reason,
    Rows,
    out_of_range,
)

LABEL = "example.com/gpu-driver"


class GpuDriverArguments(Arguments, frozen=True):
    """What the configuration file may say; fields are camelCase there."""

    minimum: int = 0

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types."""
        return out_of_range("minimum", self.minimum, 0, 9999)


class GpuDriver:
    """Filters nodes by their driver, and scores newer ones higher."""

    name = "GpuDriver"
    Args = GpuDriverArguments

    def __init__(self, arguments: GpuDriverArguments | None = None) -> None:
        self._minimum = (arguments or GpuDriverArguments()).minimum

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_NewEnough | None":
        """Compile the filter; pods without GPUs may go anywhere."""
        return _NewEnough(cluster, self._minimum) if spec.gpu else None

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Newest | None":
        """Compile the score."""
        return _Newest(cluster) if spec.gpu else None


class _NewEnough:
    # Labels are of the node object: pods that come and go change nothing here.
    depends = Depends.NODE

    def __init__(self, cluster: Cluster, minimum: int) -> None:
        self._cluster = cluster
        self._minimum = minimum
        self._reason = Reason(f"node(s) have a GPU driver older than {minimum}", unresolvable=True)

    def __call__(self, rows: Rows) -> Mask:
        mask: Mask = _versions(self._cluster, rows) >= self._minimum
        return mask

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield self._reason, ~self(rows)


class _Newest:
    depends = Depends.NODE

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __call__(self, rows: Rows) -> Column:
        return _versions(self._cluster, rows)

    def normalize(self, raw: Column, feasible: Mask) -> Column:
        """Return 100 for the newest driver among the nodes that will do, and the others' part."""
        newest = raw[feasible].max(initial=0.0)
        if not newest:
            return np.zeros_like(raw)
        return np.minimum(np.floor(raw * 100.0 / newest), 100.0)


def _versions(cluster: Cluster, rows: Rows) -> Column:
    """Return the driver's version per row, 0 where the node does not say."""
    labels = cluster.columns.labels
    column = labels.column(LABEL)[rows]
    # Labels are kept as numbers that stand for values; -1, no label, finds the 0 at the end.
    known = [float(v) if v.isdecimal() else 0.0 for v in labels.values(LABEL)]
    versions: Column = np.array([*known, 0.0])[column]
    return versions

"""NodeName: a pod that names its node goes nowhere else."""

from collections.abc import Iterable

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Mask, Rows

REASON = Reason("node(s) didn't match the requested node name", unresolvable=True)


class NodeName:
    """Filters by `spec.nodeName`."""

    name = "NodeName"

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Named | None":
        """Compile the filter."""
        return _Named(spec.node_name, cluster) if spec.node_name else None


class _Named:
    depends = Depends.NODE

    def __init__(self, node_name: str, cluster: Cluster) -> None:
        self._node_name = node_name
        self._columns = cluster.columns

    def __call__(self, rows: Rows) -> Mask:
        ok = np.zeros(self._columns.alive.size, bool)
        row = self._columns.row_of.get(self._node_name)
        if row is not None:
            ok[row] = True
        return ok[rows]

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield REASON, ~self(rows)

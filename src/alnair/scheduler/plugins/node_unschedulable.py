"""NodeUnschedulable: cordoned nodes take only pods that tolerate it."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from alnair.model.nodes import Taint
from alnair.model.workload import PodSpec, Toleration
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Mask, Rows
from alnair.scheduler.state.nodes.tolerations import tolerated

REASON = Reason("node(s) were unschedulable", unresolvable=True)
_TAINT = Taint("node.kubernetes.io/unschedulable", "NoSchedule")


class NodeUnschedulable:
    """Filters by `spec.unschedulable`."""

    name = "NodeUnschedulable"

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Schedulable | None":
        """Compile the filter."""
        return None if tolerated(_TAINT, spec.tolerations) else _Schedulable(cluster)

    def relaxations(self, spec: PodSpec, cluster: Cluster) -> Iterator[Relaxation]:
        """Return to take the cordon off a node."""
        cordon = Toleration(_TAINT.key, "Exists")
        tolerated_too = replace(spec, tolerations=(*spec.tolerations, cordon))
        yield Relaxation("uncordon", "uncordon {node}", 0.25, tolerated_too)


class _Schedulable:
    depends = Depends.NODE

    def __init__(self, cluster: Cluster) -> None:
        self._columns = cluster.columns

    def __call__(self, rows: Rows) -> Mask:
        return ~self._columns.unschedulable[rows]

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield REASON, self._columns.unschedulable[rows]

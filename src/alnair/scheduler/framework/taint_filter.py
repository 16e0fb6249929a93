"""Which nodes have only taints that a pod tolerates.

Source of semantics: `pkg/scheduler/framework/plugins/tainttoleration` of Kubernetes.
"""

from collections.abc import Iterable

import numpy as np

from alnair.model.nodes import Taint
from alnair.model.workload import Toleration
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Mask, Rows
from alnair.scheduler.state.nodes.tolerations import tolerated

#: Effects that keep pods away; with others, nodes are only worse.
HARD_EFFECTS = ("NoSchedule", "NoExecute")
REASON = Reason("node(s) had untolerated taint(s)", unresolvable=True)


class ToleratedTaints:
    """The filter by taints that keep pods away.

    Args:
        tolerations: of the pod.
        cluster: its nodes.
        comparing: the operators Lt and Gt count.
    """

    depends = Depends.NODE

    def __init__(
        self, tolerations: tuple[Toleration, ...], cluster: Cluster, *, comparing: bool = False
    ) -> None:
        self._tolerations = tolerations
        self._comparing = comparing
        self._columns = cluster.columns
        self._verdicts: list[bool] = []
        self._ok: Mask = np.zeros(0, bool)
        self._all_ok = False

    def _judge_new_sets(self) -> None:
        sets = list(self._columns.taint_sets)[len(self._verdicts) :]
        self._verdicts += map(self._tolerates, sets)
        self._ok = np.array(self._verdicts)
        self._all_ok = all(self._verdicts)

    def _tolerates(self, taints: Iterable[Taint]) -> bool:
        return all(
            t.effect not in HARD_EFFECTS
            or tolerated(t, self._tolerations, comparing=self._comparing)
            for t in taints
        )

    def __call__(self, rows: Rows) -> Mask:
        """Return which rows have no taint that the pod does not tolerate."""
        if len(self._verdicts) < len(self._columns.taint_sets):
            self._judge_new_sets()
        sets = self._columns.taint_set[rows]
        return np.ones(sets.size, bool) if self._all_ok else self._ok[sets]

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        """Return the one reason."""
        yield REASON, ~self(rows)

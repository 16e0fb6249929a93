"""TaintToleration: keep off nodes whose taints the pod does not tolerate.

Source of semantics: `pkg/scheduler/framework/plugins/tainttoleration` of Kubernetes.
"""

from collections.abc import Iterable

import numpy as np

from alnair.model.cluster import Taint
from alnair.model.workload import PodSpec, Toleration
from alnair.scheduler.framework.contract import Depends, Normalize, Reason
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows
from alnair.scheduler.state.nodes.tolerations import tolerated

_HARD = ("NoSchedule", "NoExecute")
_SOFT = "PreferNoSchedule"
REASON = Reason("node(s) had untolerated taint(s)", unresolvable=True)


class TaintToleration:
    """Filters by hard taints; scores nodes with fewer untolerated soft taints higher."""

    name = "TaintToleration"

    def __init__(self, *, comparing: bool = False) -> None:
        #: The operators Lt and Gt count.
        self.comparing = comparing

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Tolerated":
        """Compile the filter."""
        return _Tolerated(spec.tolerations, cluster, comparing=self.comparing)

    def score(self, spec: PodSpec, cluster: Cluster) -> "_SoftTaints | None":
        """Compile the score."""
        soft = any(t.effect == _SOFT for taints in cluster.columns.taint_sets for t in taints)
        # A set that appears later changes the schema, so this is asked again then.
        return _SoftTaints(spec.tolerations, cluster, comparing=self.comparing) if soft else None


class _Tolerated:
    depends = Depends.NODE

    def __init__(
        self, tolerations: tuple[Toleration, ...], cluster: Cluster, *, comparing: bool
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
            t.effect not in _HARD or tolerated(t, self._tolerations, comparing=self._comparing)
            for t in taints
        )

    def __call__(self, rows: Rows) -> Mask:
        if len(self._verdicts) < len(self._columns.taint_sets):
            self._judge_new_sets()
        sets = self._columns.taint_set[rows]
        return np.ones(sets.size, bool) if self._all_ok else self._ok[sets]

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield REASON, ~self(rows)


class _SoftTaints:
    depends = Depends.NODE

    def __init__(
        self, tolerations: tuple[Toleration, ...], cluster: Cluster, *, comparing: bool
    ) -> None:
        self._comparing = comparing
        # Only tolerations for this effect, or for all effects, count here.
        self._tolerations = tuple(t for t in tolerations if t.effect in ("", _SOFT))
        self._columns = cluster.columns
        self.normalize: Normalize | None = fewer_is_better

    def __call__(self, rows: Rows) -> Column:
        counts = [
            sum(
                t.effect == _SOFT and not tolerated(t, self._tolerations, comparing=self._comparing)
                for t in taints
            )
            for taints in self._columns.taint_sets
        ]
        return np.array(counts, float)[self._columns.taint_set[rows]]


def fewer_is_better(raw: Column, feasible: Mask) -> Column:
    """Return 100 for nothing down to 0 for the most of a feasible row, in integers."""
    most = raw[feasible].max(initial=0.0)
    return 100.0 - np.floor(raw * 100.0 / most) if most else np.full_like(raw, 100.0)

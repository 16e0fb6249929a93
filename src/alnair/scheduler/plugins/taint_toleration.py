"""TaintToleration: keep off nodes whose taints the pod does not tolerate.

Source of semantics: `pkg/scheduler/framework/plugins/tainttoleration` of Kubernetes.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec.structs import replace

from alnair.model.nodes import Taint
from alnair.model.workload import PodSpec, Toleration
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.framework.normalize import fewer_is_better
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.framework.taint_filter import HARD_EFFECTS, ToleratedTaints
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows
from alnair.scheduler.state.nodes.tolerations import tolerated

_SOFT: Final = "PreferNoSchedule"
#: Taints that advice names at most.
_TAINTS: Final = 8


class TaintToleration:
    """Filters by hard taints; scores nodes with fewer untolerated soft taints higher."""

    name = "TaintToleration"

    def __init__(self, *, comparing: bool = False) -> None:
        #: The operators Lt and Gt count.
        self.comparing = comparing

    def filter(self, spec: PodSpec, cluster: Cluster) -> ToleratedTaints:
        """Compile the filter."""
        return ToleratedTaints(spec.tolerations, cluster, comparing=self.comparing)

    def score(self, spec: PodSpec, cluster: Cluster) -> "_SoftTaints | None":
        """Compile the score."""
        soft = any(t.effect == _SOFT for taints in cluster.columns.taint_sets for t in taints)
        # A set that appears later changes the schema, so this is asked again then.
        return _SoftTaints(spec.tolerations, cluster, comparing=self.comparing) if soft else None

    def relaxations(self, spec: PodSpec, cluster: Cluster) -> Iterator[Relaxation]:
        """Return the most frequent taints that the pod could tolerate."""
        columns = cluster.columns
        nodes = np.bincount(columns.taint_set[columns.alive], minlength=len(columns.taint_sets))
        taints: Counter[Taint] = Counter()
        for each, number in columns.taint_sets.items():
            for taint in each:
                if taint.effect in HARD_EFFECTS and not tolerated(
                    taint, spec.tolerations, comparing=self.comparing
                ):
                    taints[taint] += int(nodes[number])
        # Sets of nodes that are gone are kept: nobody has their taints any more.
        for taint, _ in (+taints).most_common(_TAINTS):
            toleration = Toleration(taint.key, "Equal", taint.value, taint.effect)
            value = f"={taint.value}" if taint.value else ""
            yield Relaxation(
                "toleration",
                f"tolerate the taint {taint.key}{value}:{taint.effect}",
                0.25,
                replace(spec, tolerations=(*spec.tolerations, toleration)),
            )


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

"""Topology domains of a spread constraint: which nodes count, how many matching pods each has.

What depends on nodes alone is worked out when a node changed; after a booking there is one sum over
the rows left to do.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import LabelSelector, PodSpec, Requirement, SpreadConstraint
from alnair.scheduler.framework.node_selectors import required_affinity
from alnair.scheduler.framework.taint_filter import ToleratedTaints
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Columns, Mask
from alnair.scheduler.state.nodes.labels import ABSENT
from alnair.scheduler.state.pods.label_selectors import matches
from alnair.scheduler.state.pods.pod_index import PodQuery


class Domains:
    """The domains of one constraint for one pod class: the values of its topology key.

    Attributes:
        self_match: 1 if the pod would count itself, else 0.
        values: (rows,), the number of the row's domain, `ABSENT` without the label.
        size: domains are numbered below this.
        exists: (size,), whether a node that counts is in the domain.
    """

    def __init__(self, constraint: SpreadConstraint, spec: PodSpec, cluster: Cluster) -> None:
        self.constraint = constraint
        self._cluster = cluster
        selector = _with_match_labels(constraint, spec)
        self.self_match = int(selector is not None and matches(selector, dict(spec.labels)))
        # A selector without requirements counts nobody, though it matches the pod itself.
        self._query = (
            PodQuery(frozenset({spec.namespace}), selector, skip_deleting=True)
            if selector is not None and selector.requirements
            else None
        )
        self._policies = [
            compiled
            for compiled in (
                required_affinity(spec, cluster) if constraint.honor_affinity else None,
                ToleratedTaints(spec.tolerations, cluster) if constraint.honor_taints else None,
            )
            if compiled is not None
        ]
        self.values: NDArray[np.int32] = np.zeros(0, np.int32)
        self.size = 0
        self.exists: Mask = np.zeros(0, bool)
        self._bins: NDArray[np.intp] = np.zeros(0, np.intp)

    def follow_nodes(self, eligible: Mask) -> None:
        """Take in the nodes as they are now; of the eligible ones count those the policies let."""
        rows = slice(0, eligible.size)
        for policy in self._policies:
            eligible = eligible & policy(rows)
        self.values = self._cluster.columns.labels.column(self.constraint.topology_key)[rows]
        self.size = int(self.values.max(initial=ABSENT)) + 1
        # Rows that do not count go to a bin of their own, behind the domains.
        self._bins = np.where(eligible & (self.values != ABSENT), self.values, self.size)
        self.exists = np.bincount(self._bins, minlength=self.size + 1)[: self.size] > 0

    def per_row(self) -> Column:
        """Return the number of matching pods on each row."""
        rows = slice(0, self.values.size)
        return self._cluster.pods.counts(self._query)[rows] if self._query else np.zeros(rows.stop)

    def per_domain(self) -> Column:
        """Return the number of matching pods in each domain, on nodes that count."""
        if self._query is None:
            return np.zeros(self.size)
        sums = np.bincount(self._bins, self.per_row(), self.size + 1)
        # With weights they are floats, which NumPy's types do not tell.
        return sums[: self.size].astype(np.float64, copy=False)


class NodeChanges:
    """Tells whether nodes changed since the last time it was asked."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._seen: tuple[int, int, int] | None = None

    def any(self) -> bool:
        """Return whether anything that depends on nodes alone must be worked out again."""
        now = (self._columns.epoch, self._columns.n, self._columns.nodes_changed.end)
        changed = now != self._seen
        self._seen = now
        return changed


def have_all_keys(columns: Columns, keys: Sequence[str]) -> Mask:
    """Return which rows are nodes with all these labels."""
    rows = slice(0, columns.n)
    ok = columns.alive[rows].copy()
    for key in keys:
        ok &= columns.labels.column(key)[rows] != ABSENT
    return ok


def _with_match_labels(constraint: SpreadConstraint, spec: PodSpec) -> LabelSelector | None:
    """Return the constraint's selector, narrowed to pods with the same values of its keys."""
    if constraint.selector is None:
        return None
    same = tuple(
        Requirement(key, "In", (value,))
        for key, value in spec.labels
        if key in constraint.match_label_keys
    )
    return LabelSelector(same + constraint.selector.requirements)

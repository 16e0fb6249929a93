"""Which nodes a pod's node selector and its required node affinity match.

Source of semantics: `component-helpers/scheduling/corev1/nodeaffinity` of Kubernetes.
"""

from collections.abc import Iterable

import numpy as np

from alnair.model.workload import PodSpec, Requirement, Term
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.framework.selector_validation import is_well_formed
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Columns, Mask, Rows
from alnair.scheduler.state.nodes.integers import parse_int
from alnair.scheduler.state.nodes.labels import ABSENT

REASON = Reason("node(s) didn't match Pod's node affinity/selector", unresolvable=True)
ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity", unresolvable=True)


def required_affinity(
    spec: PodSpec, cluster: Cluster, added: tuple[Term, ...] | None = None
) -> "RequiredAffinity | None":
    """Return the filter by selector and required terms; None if it would pass every node.

    Args:
        spec: the pod class.
        cluster: its nodes.
        added: terms that the administrator requires besides, any of which must match.
    """
    required = spec.affinity.required if spec.affinity else None
    if not spec.node_selector and required is None and added is None:
        return None
    return RequiredAffinity(spec, added, cluster)


class RequiredAffinity:
    """The filter by node selector and required terms."""

    depends = Depends.NODE

    def __init__(self, spec: PodSpec, added: tuple[Term, ...] | None, cluster: Cluster) -> None:
        self._columns = cluster.columns
        self._added = added
        self._selector = tuple(Requirement(k, "In", (v,)) for k, v in spec.node_selector)
        required = spec.affinity.required if spec.affinity else None
        self._terms = None if required is None else [t for t in required if is_well_formed(t)]

    def __call__(self, rows: Rows) -> Mask:
        """Return which rows match."""
        ok = self._enforced(rows)
        for requirement in self._selector:
            ok &= label_mask(requirement, self._columns, rows)
        if self._terms is not None:
            ok &= _any_of(self._terms, self._columns, rows)
        return ok

    def _enforced(self, rows: Rows) -> Mask:
        if self._added is None:
            return np.ones(self._columns.alive[rows].size, bool)
        return _any_of(self._added, self._columns, rows)

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        """Return whose terms the rows do not match, the administrator's or the pod's."""
        enforced = self._enforced(rows)
        yield ENFORCED, ~enforced
        yield REASON, enforced & ~self(rows)


def term_mask(term: Term, columns: Columns, rows: Rows) -> Mask:
    """Return which rows the term matches; a term without requirements matches none."""
    size = columns.alive[rows].size
    if not term.labels and not term.fields:
        return np.zeros(size, bool)
    ok = np.ones(size, bool)
    for requirement in term.labels:
        ok &= label_mask(requirement, columns, rows)
    for requirement in term.fields:
        ok &= _field_mask(requirement, columns, rows)
    return ok


def label_mask(requirement: Requirement, columns: Columns, rows: Rows) -> Mask:
    """Return which rows satisfy the requirement on a label."""
    key, values = requirement.key, requirement.values
    column = columns.labels.column(key)[rows]
    match requirement.operator:
        case "In":
            return np.isin(column, [columns.labels.value(key, v) for v in values])
        case "NotIn":
            return ~np.isin(column, [columns.labels.value(key, v) for v in values])
        case "Exists":
            present: Mask = column != ABSENT
            return present
        case "DoesNotExist":
            absent: Mask = column == ABSENT
            return absent
        case "Gt" | "Lt":
            return _compared(requirement, columns)[column]
    raise AssertionError(f"{requirement} was not checked")  # malformed terms are left out


def _compared(requirement: Requirement, columns: Columns) -> Mask:
    """Return, per interned value and last for `ABSENT`, whether it compares as asked."""
    limit = parse_int(requirement.values[0])
    numbers = [parse_int(v) for v in columns.labels.values(requirement.key)]
    greater = requirement.operator == "Gt"
    return np.array(
        [
            n is not None and limit is not None and (n > limit if greater else n < limit)
            for n in numbers
        ]
        + [False],
        bool,
    )


def _field_mask(requirement: Requirement, columns: Columns, rows: Rows) -> Mask:
    named = np.zeros(columns.alive.size, bool)
    if requirement.key == "metadata.name":
        for name in requirement.values:
            row = columns.row_of.get(name)
            if row is not None:
                named[row] = True
        if requirement.operator == "NotIn":
            return ~named[rows]
        if requirement.operator == "In":
            return named[rows]
    return np.zeros(columns.alive[rows].size, bool)


def _any_of(terms: Iterable[Term], columns: Columns, rows: Rows) -> Mask:
    ok = np.zeros(columns.alive[rows].size, bool)
    for term in terms:
        ok |= term_mask(term, columns, rows)
    return ok

"""NodeAffinity: node selector, required and preferred node affinity.

Source of semantics: `pkg/scheduler/framework/plugins/nodeaffinity` and
`component-helpers/scheduling/corev1`.
"""

from collections.abc import Iterable

import msgspec
import numpy as np

from alnair.model import workload
from alnair.model.workload import PodSpec, Preference, Requirement, Term
from alnair.scheduler.framework.arguments import Arguments
from alnair.scheduler.framework.contract import Depends, Normalize, Reason, Refusal
from alnair.scheduler.framework.selector_validation import is_well_formed, joined, term_problems
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Columns, Mask, Rows
from alnair.scheduler.state.nodes.integers import parse_int
from alnair.scheduler.state.nodes.labels import ABSENT

REASON = Reason("node(s) didn't match Pod's node affinity/selector", unresolvable=True)
ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity", unresolvable=True)


class SelectorRequirement(Arguments, frozen=True):
    """A requirement of a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class SelectorTerm(Arguments, frozen=True):
    """A node selector term."""

    match_expressions: tuple[SelectorRequirement, ...] = ()
    match_fields: tuple[SelectorRequirement, ...] = ()

    def term(self) -> Term:
        """Return the term as pods have it."""
        return Term(
            tuple(Requirement(r.key, r.operator, r.values) for r in self.match_expressions),
            tuple(Requirement(r.key, r.operator, r.values) for r in self.match_fields),
        )


class NodeSelector(Arguments, frozen=True):
    """Node selector terms, any of which must match."""

    node_selector_terms: tuple[SelectorTerm, ...] = ()


class PreferredTerm(Arguments, frozen=True):
    """A node selector term and its weight."""

    weight: int
    preference: SelectorTerm


class AddedAffinity(Arguments, frozen=True):
    """Node affinity that the administrator adds to every pod's own."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class NodeAffinityArguments(Arguments, frozen=True):
    """Arguments of NodeAffinity."""

    added_affinity: AddedAffinity | None = None

    def problems(self) -> list[str]:
        """Return what is malformed."""
        added = self.added_affinity
        if added is None:
            return []
        path = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        found = []
        for i, term in enumerate(added.required.node_selector_terms if added.required else ()):
            found += term_problems(term.term(), f"{path}[{i}]")
        path = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        for i, preferred in enumerate(added.preferred):
            if preferred.weight:
                found += term_problems(preferred.preference.term(), f"{path}[{i}]")
        return found

    def affinity(self) -> workload.NodeAffinity:
        """Return the added affinity as pods have it."""
        added = self.added_affinity or AddedAffinity()
        required = added.required
        return workload.NodeAffinity(
            None if required is None else tuple(t.term() for t in required.node_selector_terms),
            tuple(Preference(p.weight, p.preference.term()) for p in added.preferred),
        )


class NodeAffinity:
    """Filters by selector and required terms; scores by the weights of preferred terms."""

    name = "NodeAffinity"
    Args = NodeAffinityArguments

    def __init__(self, arguments: NodeAffinityArguments | None = None) -> None:
        self._added = (arguments or NodeAffinityArguments()).affinity()

    def pre_filter(self, spec: PodSpec) -> Refusal | None:
        """Refuse pods all of whose required terms name different nodes at once."""
        required = spec.affinity.required if spec.affinity else None
        if not required:
            return None
        names = [_node_names(term) for term in required]
        if any(n is None or n for n in names):
            return None
        return Refusal(self.name, "pod affinity terms conflict")

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Required | None":
        """Compile the filter."""
        required = spec.affinity.required if spec.affinity else None
        if not spec.node_selector and required is None and self._added.required is None:
            return None
        return _Required(spec, self._added.required, cluster)

    def pre_score(self, spec: PodSpec) -> Refusal | None:
        """Refuse pods with malformed preferences."""
        problems: list[str] = []
        for i, preference in enumerate(spec.affinity.preferred if spec.affinity else ()):
            if preference.weight:
                problems += term_problems(preference.term, f"[{i}]")
        return Refusal(self.name, joined(problems)) if problems else None

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Preferred | None":
        """Compile the score."""
        preferred = self._added.preferred + (spec.affinity.preferred if spec.affinity else ())
        return _Preferred(preferred, cluster) if preferred else None


class _Required:
    depends = Depends.NODE

    def __init__(self, spec: PodSpec, added: tuple[Term, ...] | None, cluster: Cluster) -> None:
        self._columns = cluster.columns
        self._added = added
        self._selector = tuple(Requirement(k, "In", (v,)) for k, v in spec.node_selector)
        required = spec.affinity.required if spec.affinity else None
        self._terms = None if required is None else [t for t in required if is_well_formed(t)]

    def __call__(self, rows: Rows) -> Mask:
        ok = self._enforced(rows)
        for requirement in self._selector:
            ok &= label_mask(requirement, self._columns, rows)
        if self._terms is not None:
            ok &= _any(self._terms, self._columns, rows)
        return ok

    def _enforced(self, rows: Rows) -> Mask:
        if self._added is None:
            return np.ones(self._columns.alive[rows].size, bool)
        return _any(self._added, self._columns, rows)

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        enforced = self._enforced(rows)
        yield ENFORCED, ~enforced
        yield REASON, enforced & ~self(rows)


def _any(terms: Iterable[Term], columns: Columns, rows: Rows) -> Mask:
    ok = np.zeros(columns.alive[rows].size, bool)
    for term in terms:
        ok |= term_mask(term, columns, rows)
    return ok


class _Preferred:
    depends = Depends.NODE

    def __init__(self, preferred: Iterable[Preference], cluster: Cluster) -> None:
        self._columns = cluster.columns
        self._preferred = [p for p in preferred if is_well_formed(p.term)]
        self.normalize: Normalize | None = more_is_better

    def __call__(self, rows: Rows) -> Column:
        total = np.zeros(self._columns.alive[rows].size)
        for preference in self._preferred:
            total += preference.weight * term_mask(preference.term, self._columns, rows)
        return total


def more_is_better(raw: Column, feasible: Mask) -> Column:
    """Return 100 for the most of a feasible row down to 0 for nothing, in integers."""
    most = raw[feasible].max(initial=0.0)
    return np.floor(raw * 100.0 / most) if most else raw


def _node_names(term: Term) -> set[str] | None:
    """Return the nodes that the term names, None if it names none."""
    named = [set(r.values) for r in term.fields if r.key == "metadata.name" and r.operator == "In"]
    return set.intersection(*named) if named else None


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

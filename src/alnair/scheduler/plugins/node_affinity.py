"""NodeAffinity: node selector, required and preferred node affinity.

Source of semantics: `pkg/scheduler/framework/plugins/nodeaffinity` and
`component-helpers/scheduling/corev1`.
"""

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from alnair.model import workload
from alnair.model.workload import PodSpec, Preference, Requirement, Term
from alnair.scheduler.framework.arguments import Arguments
from alnair.scheduler.framework.extension_points import Depends, Normalize, Refusal
from alnair.scheduler.framework.node_affinity_changes import selector_changes, term_changes
from alnair.scheduler.framework.node_selectors import RequiredAffinity, required_affinity, term_mask
from alnair.scheduler.framework.normalize import more_is_better
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.framework.selector_validation import is_well_formed, joined, term_problems
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows


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

    def filter(self, spec: PodSpec, cluster: Cluster) -> RequiredAffinity | None:
        """Compile the filter."""
        return required_affinity(spec, cluster, self._added.required)

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

    def relaxations(self, spec: PodSpec, cluster: Cluster) -> Iterator[Relaxation]:
        """Return to write what there is, or to drop one requirement: of the selector, or a term."""
        yield from selector_changes(spec, cluster)
        yield from term_changes(spec, cluster)


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


def _node_names(term: Term) -> set[str] | None:
    """Return the nodes that the term names, None if it names none."""
    named = [set(r.values) for r in term.fields if r.key == "metadata.name" and r.operator == "In"]
    return set.intersection(*named) if named else None

"""Single changes of a node selector or required node affinity that may let a pod fit.

Where no node has what is required, that is mostly a typing error, so what comes near to it is
offered before dropping the requirement is.
"""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from alnair.model.near_names import near
from alnair.model.workload import PodSpec, Requirement, Term
from alnair.scheduler.framework.known_labels import is_met, label_values
from alnair.scheduler.framework.relaxation import Relaxation, requirement_text
from alnair.scheduler.state.cluster import Cluster

#: Near names that are offered for one requirement.
_NEAR: Final = 2
#: How much is changed: by putting a typing error right, and by dropping a requirement.
_CORRECTED: Final = 0.1
_SELECTOR_DROPPED: Final = 0.45
_TERM_DROPPED: Final = 0.5


def selector_changes(spec: PodSpec, cluster: Cluster) -> Iterator[Relaxation]:
    """Return to correct or to drop one pair of the node selector."""

    def relaxation(text: str, size: float, pairs: tuple[tuple[str, str], ...]) -> Relaxation:
        return Relaxation("node-selector", text, size, replace(spec, node_selector=pairs))

    for pair in spec.node_selector:
        key, value = pair
        rest = tuple(p for p in spec.node_selector if p != pair)
        for right in _corrected(Requirement(key, "In", (value,)), cluster):
            corrected = (right.key, right.values[0])
            text = f"select {'='.join(corrected)} instead of {key}={value}"
            yield relaxation(text, _CORRECTED, tuple(sorted((*rest, corrected))))
        yield relaxation(f"drop {key}={value} from the node selector", _SELECTOR_DROPPED, rest)


def term_changes(spec: PodSpec, cluster: Cluster) -> Iterator[Relaxation]:
    """Return to correct or to drop one requirement of a required term."""
    affinity = spec.affinity
    if affinity is None or not affinity.required:
        return
    terms = affinity.required

    def relaxation(text: str, size: float, at: int, term: Term) -> Relaxation:
        # A term without requirements would match nothing; one that must match anything goes.
        required = (*terms[:at], term, *terms[at + 1 :]) if term.labels or term.fields else None
        softer = replace(affinity, required=required)
        return Relaxation("node-affinity", text, size, replace(spec, affinity=softer))

    for i, term in enumerate(terms):
        for j, requirement in enumerate((*term.labels, *term.fields)):
            wrong = requirement_text(requirement)
            if j < len(term.labels):
                for right in _corrected(requirement, cluster):
                    labels = (*term.labels[:j], right, *term.labels[j + 1 :])
                    text = f"require {requirement_text(right)} instead of {wrong} of nodes"
                    yield relaxation(text, _CORRECTED, i, Term(labels, term.fields))
            text = f"drop {wrong} from the required node affinity"
            yield relaxation(text, _TERM_DROPPED, i, _without(term, j))


def _corrected(requirement: Requirement, cluster: Cluster) -> Iterator[Requirement]:
    """Return what may have been meant by a requirement on a label that no node meets."""
    if requirement.operator not in ("In", "Exists") or is_met(requirement, cluster):
        return
    key, asked = requirement.key, requirement.values
    if there := label_values(key, cluster):
        close = dict.fromkeys(value for each in asked for value in near(each, there, _NEAR))
        for value in list(close)[:_NEAR]:
            yield Requirement(key, "In", (value,))
        return
    for other in near(key, cluster.columns.labels.keys(), _NEAR):
        meant = Requirement(other, requirement.operator, asked)
        if is_met(meant, cluster):
            yield meant


def _without(term: Term, index: int) -> Term:
    labels = tuple(r for k, r in enumerate(term.labels) if k != index)
    fields = tuple(r for k, r in enumerate(term.fields) if k + len(term.labels) != index)
    return Term(labels, fields)

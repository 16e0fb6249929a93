"""What a pod says about its neighbours: terms of required inter-pod affinity and anti-affinity.

Rules: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Term(msgspec.Struct, frozen=True):
    """Pods in the domain of a node label.

    Attributes:
        key: The node label; nodes with the same value are one domain.
        requirements: Which labels the pods have; None = no pod is meant.
        namespaces: Where they are.
        everywhere: They are in any namespace.
        vague: They are also in namespaces that a selector chooses, which are not known here.
    """

    key: str
    requirements: tuple[Mapping[str, Any], ...] | None
    namespaces: frozenset[str]
    everywhere: bool
    vague: bool

    @property
    def identity(self) -> str:
        """What makes two terms the same."""
        found = self.key, self.requirements, sorted(self.namespaces), self.everywhere, self.vague
        return repr(found)


def required(
    spec: Mapping[str, Any], kind: str, namespace: str, labels: Mapping[str, str]
) -> tuple[Term, ...]:
    """Return the required terms of `podAffinity` or `podAntiAffinity` of a pod."""
    terms = ((spec.get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or ()
    return tuple(_term(term, namespace, labels) for term in terms)


def _term(term: Mapping[str, Any], namespace: str, labels: Mapping[str, str]) -> Term:
    where = term.get("namespaceSelector")
    named = frozenset(term.get("namespaces") or ())
    everywhere = where is not None and not any(where.values())
    selector = term.get("labelSelector")
    return Term(
        key=term.get("topologyKey") or "",
        requirements=None if selector is None else (*_selector(selector), *_keys(term, labels)),
        namespaces=named or (frozenset() if where is not None else frozenset({namespace})),
        everywhere=everywhere,
        vague=where is not None and not everywhere,
    )


def _selector(selector: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key, value in sorted((selector.get("matchLabels") or {}).items()):
        yield {"key": key, "operator": "In", "values": [value]}
    yield from selector.get("matchExpressions") or ()


def _keys(term: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    pairs: Sequence[tuple[str, str]] = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
    for field, operator in pairs:
        for key in term.get(field) or ():
            if key in labels:
                yield {"key": key, "operator": operator, "values": [labels[key]]}

"""Whether a node is one that a pod accepts: selectors, affinity, taints.

Rules: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/.
"""

import re
from collections.abc import Mapping
from typing import Any

from alnair.checker.objects.affinity_terms import Term
from alnair.checker.objects.nodes import CheckedNode
from alnair.checker.objects.pods import CheckedPod

_WHOLE = re.compile(r"[+-]?\d+")


def accepts(node: CheckedNode, terms: list[dict[str, Any]]) -> bool:
    """Whether one of the node selector terms matches; no terms match nothing."""
    return any(_term(node, term) for term in terms)


def _term(node: CheckedNode, term: Mapping[str, Any]) -> bool:
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    here = {"metadata.name": node.name}
    return all(holds(node.labels, e) for e in expressions) and all(holds(here, f) for f in fields)


def holds(values: Mapping[str, str], requirement: Mapping[str, Any]) -> bool:
    """Whether one requirement of a selector holds; an operator that is not known does not."""
    key, operator = requirement.get("key", ""), requirement.get("operator")
    listed = requirement.get("values") or []
    found = values.get(key)
    if operator == "In":
        return found is not None and found in listed
    if operator == "NotIn":
        return found is None or found not in listed
    if operator == "Exists":
        return found is not None
    if operator == "DoesNotExist":
        return found is None
    if operator in {"Gt", "Lt"} and len(listed) == 1 and found is not None:
        if not _WHOLE.fullmatch(found) or not _WHOLE.fullmatch(str(listed[0])):
            return False
        left, right = int(found), int(listed[0])
        return left > right if operator == "Gt" else left < right
    return False


def about(term: Term, pod: CheckedPod) -> bool:
    """Whether a term of inter-pod affinity surely means the pod."""
    if not term.everywhere and pod.namespace not in term.namespaces:
        return False
    return term.requirements is not None and all(holds(pod.labels, r) for r in term.requirements)


def tolerates(pod: CheckedPod, taint: Mapping[str, str]) -> bool:
    """Whether the pod has a toleration for the taint."""
    return any(_covers(toleration, taint) for toleration in pod.tolerations)


def _covers(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    effect, key = toleration.get("effect"), toleration.get("key")
    operator = toleration.get("operator") or "Equal"
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    if operator == "Exists":
        return True
    wanted, found = toleration.get("value") or "", taint.get("value") or ""
    if operator == "Equal":
        return bool(key) and wanted == found
    if operator in {"Gt", "Lt"} and _WHOLE.fullmatch(wanted) and _WHOLE.fullmatch(found):
        # KEP-5471: the taint's value is compared with the toleration's.
        left, right = int(found), int(wanted)
        return left > right if operator == "Gt" else left < right
    return False

"""Whether a toleration covers a taint. Source: `k8s.io/api/core/v1`, ToleratesTaint."""

from collections.abc import Iterable

from alnair.model.nodes import Taint
from alnair.model.workload import Toleration
from alnair.scheduler.state.nodes.integers import parse_int


def tolerated(taint: Taint, tolerations: Iterable[Toleration], *, comparing: bool = False) -> bool:
    """Return whether any of the tolerations covers the taint.

    Args:
        taint: of a node.
        tolerations: of a pod.
        comparing: the operators Lt and Gt count; they are behind the feature gate
            TaintTolerationComparisonOperators, which is off in Kubernetes 1.36.
    """
    return any(_covers(t, taint, comparing) for t in tolerations)


def _covers(toleration: Toleration, taint: Taint, comparing: bool) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return bool(toleration.key) and toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt":
            return comparing and _compares(toleration, taint)
    return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    limit, value = parse_int(toleration.value), parse_int(taint.value)
    if limit is None or value is None:
        return False
    return value < limit if toleration.operator == "Lt" else value > limit

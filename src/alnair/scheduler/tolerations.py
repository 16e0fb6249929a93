"""Whether a toleration covers a taint. Source: `k8s.io/api/core/v1`, ToleratesTaint."""

from collections.abc import Iterable

from alnair.model.cluster import Taint
from alnair.model.workload import Toleration


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Return whether any of the tolerations covers the taint."""
    return any(_covers(t, taint) for t in tolerations)


def _covers(toleration: Toleration, taint: Taint) -> bool:
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
            return _compares(toleration, taint)
    return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    try:
        limit, value = int(toleration.value), int(taint.value)
    except ValueError:
        return False
    return value < limit if toleration.operator == "Lt" else value > limit

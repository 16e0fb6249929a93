"""Which labels of pods a selector matches."""

from collections.abc import Mapping

from alnair.model.workload import LabelSelector, Requirement


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Return whether the labels satisfy the selector."""
    return all(_holds(requirement, labels) for requirement in selector.requirements)


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False

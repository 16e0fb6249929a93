"""Which labels of pods a selector matches."""

from collections.abc import Iterable, Mapping

from alnair.model.workload import LabelSelector, Requirement


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Return whether the labels satisfy the selector."""
    return all(_holds(requirement, labels) for requirement in selector.requirements)


def anchors(selector: LabelSelector | None) -> Iterable[tuple[str, str] | None]:
    """Return labels one of which a selected pod must have; None among them = perhaps no label.

    A selector is filed under these, so that a pod finds those that may select it.
    """
    if selector is None:
        return ()
    for requirement in selector.requirements:
        if requirement.operator == "In":
            return {(requirement.key, value): None for value in requirement.values}
    return (None,)


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

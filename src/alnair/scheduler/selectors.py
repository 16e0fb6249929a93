"""Label selectors of pods, and whether a requirement is well formed, as Kubernetes checks it.

Source: `k8s.io/apimachinery/pkg/labels` (NewRequirement, validation) and
`component-helpers/scheduling/corev1/nodeaffinity`. A term with a malformed requirement matches
nothing; the API server does not refuse all of them.
"""

import re
from collections.abc import Mapping
from typing import Final

from alnair.model.workload import LabelSelector, Requirement, Term
from alnair.scheduler.integers import parse_int

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def is_well_formed(term: Term) -> bool:
    """Return whether all requirements of the term are."""
    return all(map(_is_label_requirement, term.labels)) and all(
        map(_is_field_requirement, term.fields)
    )


def _is_label_requirement(requirement: Requirement) -> bool:
    prefix, slash, name = requirement.key.rpartition("/")
    if not _NAME.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
        return False
    values = requirement.values
    match requirement.operator:
        case "In" | "NotIn":
            return bool(values) and all(not v or _NAME.fullmatch(v) for v in values)
        case "Exists" | "DoesNotExist":
            return not values
        case "Gt" | "Lt":
            return len(values) == 1 and parse_int(values[0]) is not None
    return False


def _is_field_requirement(requirement: Requirement) -> bool:
    return requirement.operator in ("In", "NotIn") and len(requirement.values) == 1


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

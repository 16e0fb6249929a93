"""A single change that may let a pod fit where a plugin refuses it, for advice to its owner."""

import msgspec

from alnair.model.workload import PodSpec, Requirement


class Relaxation(msgspec.Struct, frozen=True):
    """A change that drops or softens something; `size` orders changes, the smallest first."""

    kind: str
    text: str
    size: float
    spec: PodSpec


def requirement_text(requirement: Requirement) -> str:
    """Return a requirement on labels or fields as people write it."""
    values = f" {', '.join(requirement.values)}" if requirement.values else ""
    return f"'{requirement.key} {requirement.operator}{values}'"

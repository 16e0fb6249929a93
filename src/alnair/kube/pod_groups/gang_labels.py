"""Which gang a pod belongs to, and what it says of its gang's topology: in all dialects at once."""

import sys
from collections.abc import Mapping
from typing import Final

from alnair.kube.objects import wire
from alnair.model import names
from alnair.model.workload import GangTopology

#: More than any number of pods has; and characters of a wrong value that people are told.
_DIGITS: Final = 10
_TOLD: Final = 40


def group_of(labels: Mapping[str, str], native: wire.SchedulingGroup | None) -> str:
    """Return the name of the pod's PodGroup, empty if it has none; labels go first."""
    name = labels.get(names.POD_GROUP_LABEL) or labels.get(names.POD_GROUP_LABEL_LEGACY)
    if not name and native is not None:
        name = native.pod_group_name
    return sys.intern(name) if name else ""


def group_topology(annotations: Mapping[str, str]) -> GangTopology | None:
    """Return what a PodGroup's annotations ask for."""
    return _topology(
        annotations.get(names.TOPOLOGY_REQUIRED), annotations.get(names.TOPOLOGY_PREFERRED)
    )


def pod_topology(annotations: Mapping[str, str]) -> GangTopology | None:
    """Return what a pod's annotations, which are Kueue's, ask for."""
    return _topology(
        annotations.get(names.KUEUE_TOPOLOGY_REQUIRED),
        annotations.get(names.KUEUE_TOPOLOGY_PREFERRED),
    )


def topology_problem(annotations: Mapping[str, str], required: str) -> str:
    """Return what is wrong with an annotation that requires a level; empty if nothing is.

    Args:
        annotations: of a PodGroup or of a pod.
        required: the name of the annotation, in the dialect of those.
    """
    text = annotations.get(required)
    if not text or _levels(text):
        return ""
    return f"annotation {required} is {text!r}, which names no level: write one, or remove it"


def elastic_minimum(annotations: Mapping[str, str]) -> tuple[int, str]:
    """Return with how few members an elastic gang goes on, 0 if it is none; and what is wrong.

    Args:
        annotations: of a PodGroup. A minimum of 0 is taken as 1: without members nothing goes on.
    """
    text = annotations.get(names.ELASTIC_MIN)
    if text is None:
        return 0, ""
    if text.isascii() and text.isdecimal() and len(text) < _DIGITS:
        return max(int(text), 1), ""
    return 0, (
        f"annotation {names.ELASTIC_MIN} is {text[:_TOLD]!r}: write the least number of members "
        "with which the gang goes on, such as 1, or remove it"
    )


def _topology(required: str | None, preferred: str | None) -> GangTopology | None:
    if not required and not preferred:
        return None
    first, *_ = *_levels(required), ""
    return GangTopology(first, tuple(_levels(preferred)))


def _levels(text: str | None) -> list[str]:
    words = (word.strip() for word in (text or "").split(","))
    return [word if "/" in word else names.TOPOLOGY_PREFIX + word for word in words if word]

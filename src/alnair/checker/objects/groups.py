"""A PodGroup as the checker sees it."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from alnair.checker.objects import api_names

#: Phases that only a group has whose pods had nodes.
_PLACED: Final = ("Scheduled", "Running", "Unknown", "Finished")


class CheckedGang(msgspec.Struct, frozen=True):
    """A gang: at least `least` of its pods are bound, or none.

    Of an elastic gang that was placed once, that is its minimum. `topology` is the node label in
    one of whose domains they all are; empty = anywhere.
    """

    namespace: str
    name: str
    least: int
    api: str = ""
    topology: str = ""

    @property
    def title(self) -> str:
        """How it is named in a violation."""
        return f"podgroup {self.namespace}/{self.name}"

    @property
    def key(self) -> tuple[str, str]:
        """What its pods' label and namespace say."""
        return self.namespace, self.name


def group_of(manifest: Mapping[str, Any]) -> CheckedGang:
    """Return a gang; without a number, one pod is enough."""
    metadata = manifest.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    least = (manifest.get("spec") or {}).get("minMember")
    least = least if isinstance(least, int) and least > 0 else 1
    elastic = annotations.get(api_names.ELASTIC_MIN, "")
    if elastic.isdecimal() and _was_placed(manifest.get("status") or {}):
        least = min(least, max(int(elastic), 1))
    return CheckedGang(
        metadata.get("namespace", ""),
        metadata.get("name", ""),
        least,
        str(manifest.get("apiVersion", "")),
        _topology(annotations.get(api_names.TOPOLOGY_REQUIRED, "")),
    )


def _was_placed(status: Mapping[str, Any]) -> bool:
    # Custom resources of others keep no conditions; their phase tells.
    return status.get("phase") in _PLACED or any(
        str(condition.get("type")).endswith(("InitiallyScheduled", "PodGroupScheduled"))
        and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )


def _topology(text: str) -> str:
    # Of several words the first counts.
    level = next((word.strip() for word in text.split(",") if word.strip()), "")
    return level if not level or "/" in level else api_names.TOPOLOGY_PREFIX + level

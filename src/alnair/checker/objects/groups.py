"""A PodGroup as the checker sees it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from alnair.checker.objects import api_names


class CheckedGang(msgspec.Struct, frozen=True):
    """A gang: at least `least` of its pods are bound, or none.

    `topology` is the node label in one of whose domains they all are; empty = anywhere.
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
    least = (manifest.get("spec") or {}).get("minMember")
    return CheckedGang(
        metadata.get("namespace", ""),
        metadata.get("name", ""),
        least if isinstance(least, int) and least > 0 else 1,
        str(manifest.get("apiVersion", "")),
        _topology((metadata.get("annotations") or {}).get(api_names.TOPOLOGY_REQUIRED, "")),
    )


def _topology(text: str) -> str:
    # Of several words the first counts.
    level = next((word.strip() for word in text.split(",") if word.strip()), "")
    return level if not level or "/" in level else api_names.TOPOLOGY_PREFIX + level

"""Claims and persistent volumes as the checker sees them."""

from collections.abc import Mapping
from typing import Any

import msgspec


class CheckedClaim(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim; `volume` is empty until it is bound."""

    namespace: str
    name: str
    modes: tuple[str, ...]
    volume: str

    @property
    def key(self) -> tuple[str, str]:
        """What a pod's namespace and its volumes say."""
        return self.namespace, self.name


class CheckedVolume(msgspec.Struct, frozen=True):
    """A PersistentVolume; `terms` are those of its required node affinity, None = any node."""

    name: str
    terms: list[dict[str, Any]] | None


def claim_of(manifest: Mapping[str, Any]) -> CheckedClaim:
    """Return a claim."""
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    bound = (manifest.get("status") or {}).get("phase") == "Bound"
    return CheckedClaim(
        metadata.get("namespace", ""),
        metadata.get("name", ""),
        tuple(spec.get("accessModes") or ()),
        (spec.get("volumeName") or "") if bound else "",
    )


def volume_of(manifest: Mapping[str, Any]) -> CheckedVolume:
    """Return a volume."""
    required = ((manifest.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    return CheckedVolume(
        (manifest.get("metadata") or {}).get("name", ""),
        None if required is None else list(required.get("nodeSelectorTerms") or ()),
    )

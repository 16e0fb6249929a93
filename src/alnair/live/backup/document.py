"""The file of a backup, strictly read: JSON, so that any tool can look into it."""

from typing import Any, Final, Literal

import msgspec

from alnair.configuration.strict_yaml import DocumentError, read
from alnair.kube.resources import (
    ELASTIC_QUOTAS,
    LEGACY_PODGROUPS,
    NAMESPACES,
    NODES,
    PODGROUPS,
    Manifest,
    Resource,
)
from alnair.model import names

API_VERSION: Final = "backup.alnair.io/v1"
#: What is kept whole, in the order of restoring: a gang before its quota would pass it by.
KINDS: Final = {
    (one.api_version, one.kind): one for one in (ELASTIC_QUOTAS, PODGROUPS, LEGACY_PODGROUPS)
}
#: Of what is not ours, the labels by which it opts in.
LABELS: Final = {
    NAMESPACES.kind: (NAMESPACES, names.HOST_ACCESS),
    NODES.kind: (NODES, names.AGENT_NODE),
}


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the file."""


class Metadata(_Part, frozen=True):
    """What is kept of an object's metadata: all else is the API server's, or says who owns it."""

    name: str
    namespace: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class SavedObject(_Part, frozen=True):
    """A custom resource without its status, which the controller writes anew."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: dict[str, Any] = {}

    @property
    def resource(self) -> Resource[Manifest]:
        """Its kind."""
        return KINDS[self.api_version, self.kind]

    @property
    def called(self) -> str:
        """What people call it."""
        return f"{self.kind} {self.metadata.namespace}/{self.metadata.name}"

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types."""
        if (self.api_version, self.kind) in KINDS:
            return []
        known = ", ".join(f"{kind} of {version}" for version, kind in KINDS)
        return [f"kind: {self.kind} of {self.api_version} is not restored; known: {known}"]


class SavedLabel(_Part, frozen=True):
    """The label of a node or a namespace by which it opts in."""

    kind: Literal["Namespace", "Node"]
    name: str
    value: str

    @property
    def called(self) -> str:
        """What people call it."""
        return f"label {LABELS[self.kind][1]} of {self.kind} {self.name}"


class Backup(_Part, frozen=True):
    """All of it.

    Attributes:
        taken: When, RFC 3339.
        server: Of which cluster; for people.
        by: Version that wrote it.
    """

    api_version: Literal["backup.alnair.io/v1"]
    kind: Literal["Backup"]
    taken: str
    server: str
    by: str
    objects: list[SavedObject]
    labels: list[SavedLabel]

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types."""
        found = []
        seen: set[str] = set()
        for i, one in enumerate(self.objects):
            found += [f"objects[{i}].{line}" for line in one.problems()]
            called = f"{one.api_version} {one.called}"
            if called in seen:
                found.append(f"objects[{i}]: {one.called} is there twice: keep one of them")
            seen.add(called)
        return found


def decode(data: bytes) -> Backup:
    """Read a file.

    Raises:
        DocumentError: It is no backup, or not whole; has every problem.
    """
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DocumentError([f"is no backup, or not all of one: {error}"]) from None
    if isinstance(raw, dict) and (raw.get("apiVersion"), raw.get("kind")) != (
        API_VERSION,
        "Backup",
    ):
        found = f"{raw.get('apiVersion')}, {raw.get('kind')}"
        wanted = f"apiVersion, kind: expected {API_VERSION}, Backup (found {found})"
        raise DocumentError([f"{wanted}: 'alnair backup' writes such a file"])
    return read(raw, Backup)


def encode(backup: Backup) -> bytes:
    """Return the file."""
    return msgspec.json.format(msgspec.json.encode(backup), indent=1) + b"\n"

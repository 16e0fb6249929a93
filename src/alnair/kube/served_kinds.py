"""Which kinds a cluster serves, and which of them a word means, as kubectl reads it."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from alnair.kube.client import Client
from alnair.kube.resources import Manifest, Resource

#: All kinds of all groups in one answer, the preferred groups and versions first. The API server's
#: second form of it (beta) is that of Kubernetes before 1.30.
_FORM: Final = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
_ACCEPT: Final = f"{_FORM.format('v2')},{_FORM.format('v2beta1')},application/json"


class ServedKind(Struct, frozen=True):
    """A kind that is served, and the words for it."""

    resource: Resource[Manifest]
    words: frozenset[str]

    def is_meant(self, word: str) -> bool:
        """Return whether a word such as `job`, `Jobs`, `deploy` or `jobs.batch` means it."""
        name, _, group = word.lower().partition(".")
        if name not in self.words:
            return False
        at = self.resource
        return group in ("", at.group, at.version, f"{at.version}.{at.group}")


class _Name(Struct):
    kind: str = ""


class _Resource(Struct, rename="camel"):
    resource: str
    scope: str = "Namespaced"
    singular_resource: str = ""
    short_names: list[str] = []
    response_kind: _Name | None = None


class _Version(Struct):
    version: str
    resources: list[_Resource] = []


class _Meta(Struct):
    name: str = ""


class _Group(Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    versions: list[_Version] = []


class _Groups(Struct):
    items: list[_Group] = []


async def served_kinds(client: Client) -> list[ServedKind]:
    """Return the kinds that the cluster serves, in the order in which kubectl looks for one.

    Raises:
        KubeError: The API server cannot be asked.
    """
    found: list[ServedKind] = []
    for path in ("/api", "/apis"):
        found += read(await client.raw("GET", path, headers={"Accept": _ACCEPT}))
    return found


def read(answer: bytes) -> list[ServedKind]:
    """Return the kinds of one answer of the aggregated discovery."""
    return [
        _kind(group.metadata.name, version.version, one)
        for group in msgspec.json.decode(answer, type=_Groups).items
        for version in group.versions
        for one in version.resources
    ]


def _kind(group: str, version: str, one: _Resource) -> ServedKind:
    kind = one.response_kind.kind if one.response_kind else ""
    words = {one.resource, one.singular_resource, kind.lower(), *one.short_names} - {""}
    is_namespaced = one.scope == "Namespaced"
    resource = Resource(group, version, one.resource, kind, is_namespaced, dict[str, Any])
    return ServedKind(resource, frozenset(words))


def meant(word: str, kinds: Iterable[ServedKind]) -> Resource[Manifest] | None:
    """Return what a word means, such as `deploy`; the first in order, as kubectl; None: nothing."""
    return next((one.resource for one in kinds if one.is_meant(word)), None)


def words(kinds: Sequence[ServedKind]) -> frozenset[str]:
    """Return all words for kinds whose objects have a namespace."""
    return frozenset(word for one in kinds if one.resource.namespaced for word in one.words)

"""Finds the owners of pods: which kinds there are by discovery, what is above what by metadata."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import Forbidden, NotFound
from alnair.kube.objects import wire
from alnair.kube.resources import Manifest, Resource
from alnair.kube.timestamps import timestamp
from alnair.model.owners import Owner, OwnerRef, above, reference

#: The metadata of an object of any kind, and nothing else of it.
METADATA: Final = {
    "Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
}
#: Seconds after which an API version is asked again for a kind that it did not have.
_AGAIN: Final = 60.0
#: Owners that are kept, at most: some hundred bytes each.
_MOST: Final = 20_000


class _Kind(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool


class _Kinds(msgspec.Struct):
    resources: list[_Kind] = []


class _Meta(wire.ObjectMeta, rename="camel"):
    generate_name: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta


_kinds: Final = msgspec.json.Decoder(_Kinds)
_object: Final = msgspec.json.Decoder(_Object)


class Discovery:
    """Where objects of a group and kind live under the API server's root.

    Args:
        client: An open client.
        clock: Monotonic seconds.
    """

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[tuple[str, str], dict[str, _Kind]] = {}
        self._asked: dict[tuple[str, str], float] = {}

    async def resource(self, group: str, version: str, kind: str) -> Resource[Manifest] | None:
        """Return the resource of a kind; None if it is not served.

        Raises:
            KubeError: The API server cannot be asked.
        """
        key = (group, version)
        found = self._known.get(key, {}).get(kind)
        if found is None and self._clock() - self._asked.get(key, float("-inf")) >= _AGAIN:
            await self._ask(group, version)
            found = self._known.get(key, {}).get(kind)
        if found is None:
            return None
        return Resource(group, version, found.name, kind, found.namespaced, dict[str, Any])

    async def _ask(self, group: str, version: str) -> None:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        try:
            kinds = _kinds.decode(await self._client.raw("GET", path)).resources
        except (NotFound, Forbidden):
            kinds = []
        # Without subresources, which have a slash.
        self._known[group, version] = {one.kind: one for one in kinds if "/" not in one.name}
        self._asked[group, version] = self._clock()


class OwnerWalk:
    """Walks from pods up to their owners, and remembers them by their uids.

    Args:
        client: An open client.
        clock: Monotonic seconds.
        most: Owners that are remembered.
    """

    def __init__(self, client: Client, clock: Callable[[], float], *, most: int = _MOST) -> None:
        self._client = client
        self.discovery = Discovery(client, clock)
        self._most = most
        self._kept: OrderedDict[str, Owner] = OrderedDict()

    async def chain(self, pod: Owner) -> list[Owner]:
        """Return the pod and its owners, from below.

        An owner that is gone, or that we may not read, is the last one: its reference is all that
        is known of it.

        Raises:
            KubeError: The API server cannot be asked now.
        """
        found = [pod]
        while (ref := above(found)) is not None:
            owner = self._kept.get(ref.uid)
            if owner is None:
                owner = await self._read(ref)
                self._keep(owner)
            else:
                self._kept.move_to_end(ref.uid)
            found.append(owner)
            if not owner.readable:
                break
        return found

    def _keep(self, owner: Owner) -> None:
        self._kept[owner.ref.uid] = owner
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    async def _read(self, ref: OwnerRef) -> Owner:
        resource = await self.discovery.resource(ref.group, ref.version, ref.kind)
        if resource is None:
            return Owner(ref=ref, readable=False)
        if not resource.namespaced:
            ref = msgspec.structs.replace(ref, namespace="")
        try:
            path = resource.item(ref.name, ref.namespace)
            data = await self._client.raw("GET", path, headers=METADATA)
        except (NotFound, Forbidden, ValueError):
            return Owner(ref=ref, readable=False)
        meta = _object.decode(data).metadata
        if meta.uid != ref.uid:
            return Owner(ref=ref, readable=False)  # another one of that name by now
        return Owner(
            ref=ref,
            controller=controller_of(meta),
            generate_name=meta.generate_name,
            created=timestamp(meta.creation_timestamp),
            labels=meta.labels or {},
        )


def controller_of(meta: wire.ObjectMeta) -> OwnerRef | None:
    """Return what controls an object, by its metadata."""
    for one in meta.owner_references or ():
        if one.controller:
            return reference(one.api_version, one.kind, meta.namespace, one.name, one.uid)
    return None

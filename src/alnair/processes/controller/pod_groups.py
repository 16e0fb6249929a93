"""Keeps the status of every PodGroup true.

Pods and PodGroups are followed; a change marks the group, and marked groups are compared with what
`scheduler.gangs.pod_group_status` says they shall be. A write is guarded by the resourceVersion
that the comparison was made with, so nothing stale is ever written, not even by two controllers.
"""

import asyncio
import hashlib
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import msgspec

from alnair.elastic.pod_templates import KINDS
from alnair.kube.backoff import Backoff, Backoffs
from alnair.kube.client import Client
from alnair.kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound
from alnair.kube.informer import Change, ChangeKind, Informer, Key
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.pod_groups import dialects
from alnair.kube.pod_groups.gang_labels import elastic_minimum
from alnair.kube.pod_groups.group_members import GroupMember, MemberWire, project_member
from alnair.kube.resources import EVENTS, LEGACY_PODGROUPS, PODS, Manifest, Resource
from alnair.kube.status import patch_status_of_version, replacing
from alnair.model import names
from alnair.model.api_types import PodGroupStatus
from alnair.model.owners import OwnerRef
from alnair.processes.controller.paces import Pace
from alnair.scheduler.gangs.pod_group_status import (
    GroupEvent,
    Member,
    PodGroupState,
    group_events,
    group_status,
    native_conditions,
    only_counts,
)

_log = logging.getLogger(__name__)

#: Seconds in which changes of a group are gathered: a gang of a thousand pods costs a few writes.
#: As long as the last writes took, but at most so long: where answers are slow, others ask, too.
_GATHER: Final = 0.1
_GATHER_MOST: Final = 1.0
#: Seconds after which a group whose write failed is looked at again: at first after a conflict, as
#: the news that it lacks is on its way; at first after anything else; at most.
_CONFLICT: Final = 0.2
_RETRY: Final = 1.0
_RETRY_MOST: Final = 10.0
#: Seconds between two writes of a status at least while only counts and words change: what follows
#: from them, the phase and the conditions, is written at once.
_COUNTS: Final = 5.0
#: Writes under way at once.
_WRITERS: Final = 8
#: What the condition of a native group is called; 1.37 renamed it.
_NATIVE_CONDITION: Final = {
    resource.api_version: "PodGroupScheduled"
    if version == "v1alpha2"
    else "PodGroupInitiallyScheduled"
    for version, resource in dialects.NATIVE.items()
}


class Seen(msgspec.Struct, frozen=True):
    """A PodGroup as it was last seen."""

    name: str
    namespace: str
    uid: str
    version: str
    min_member: int
    status: PodGroupStatus
    elastic_min: int = 0
    #: A training job of ours owns it, which tells by events of its own how it gets on.
    is_jobs: bool = False


class _Kind:
    """One kind of PodGroup and those there are of it."""

    def __init__(self, resource: Resource[Any], informer: Informer[Any, Seen]) -> None:
        self.resource = resource
        self.informer = informer


class PodGroupStatusWriter:
    """Follows PodGroups and their pods, and writes statuses while `run_writes` runs.

    Args:
        client: An open client.
        clock: Monotonic seconds.
    """

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._members: defaultdict[Key, dict[str, Member]] = defaultdict(dict)
        #: Groups to look at; None while nobody would, as another process leads.
        self._marked: dict[tuple[str, Key], None] | None = None
        self._changed = asyncio.Event()
        self._pace = Pace(clock)
        #: Groups of which further counts are gathered until their time comes.
        self._resting: set[tuple[str, Key]] = set()
        self._conflicts = Backoffs[tuple[str, Key]](lambda: Backoff(_CONFLICT, _RETRY_MOST))
        self._failures = Backoffs[tuple[str, Key]](lambda: Backoff(_RETRY, _RETRY_MOST))
        self._pods = Informer(client, PODS.typed(MemberWire), project_member, self._pod)
        self._kinds: dict[str, _Kind] = {}
        for dialect in dialects.CUSTOM:
            self._add(dialect.resource, _custom)
        self._discovered = asyncio.Event()

    async def follow(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            for kind in list(self._kinds.values()):
                group.create_task(kind.informer.run())
            native = await dialects.native(self._client, self._discovered.set)
            group.create_task(self._add(native.resource, _native).informer.run())
            self._discovered.set()

    async def synced(self) -> None:
        """Wait until all that existed at the start is known."""
        await self._discovered.wait()
        await self._pods.synced.wait()
        for kind in self._kinds.values():
            if not await kind.informer.known_soon():
                _log.warning("no %s can be read", kind.resource.collection())

    async def run_writes(self) -> None:
        """Write statuses until cancelled; begins with a look at every group."""
        marked = {
            (api, key): None for api, kind in self._kinds.items() for key in kind.informer.items
        }
        self._marked = {}
        limit = asyncio.Semaphore(_WRITERS)
        try:
            while True:
                begin = time.monotonic()
                async with asyncio.TaskGroup() as group:
                    for api, key in marked:
                        group.create_task(self._reconcile(api, key, limit))
                took = time.monotonic() - begin
                await self._changed.wait()
                await asyncio.sleep(max(_GATHER, min(took, _GATHER_MOST)))
                marked, self._marked = self._marked, {}
                self._changed.clear()
        finally:
            self._marked = None

    def reference(self, namespace: str, name: str) -> OwnerRef | None:
        """Return a PodGroup as what owns its pods; None if there is none of that name."""
        for kind in self._kinds.values():
            if (seen := kind.informer.items.get((namespace, name))) is not None:
                what = kind.resource
                return OwnerRef(what.group, what.version, what.kind, namespace, name, seen.uid)
        return None

    def least(self, namespace: str, name: str) -> int:
        """Return how many pods a PodGroup needs at once; 0 if there is none of that name."""
        for kind in self._kinds.values():
            if (seen := kind.informer.items.get((namespace, name))) is not None:
                return seen.min_member
        return 0

    # --- what changes -----------------------------------------------------------------------------

    def _add(self, resource: Resource[Any], project: Callable[[Any], Seen]) -> _Kind:
        api = resource.api_version

        def changed(change: Change[Seen]) -> None:
            if change.kind is not ChangeKind.SYNCED and change.new is not None:
                self._mark(api, change.key)

        kind = _Kind(resource, Informer(self._client, resource, project, changed))
        self._kinds[api] = kind
        return kind

    def _pod(self, change: Change[GroupMember]) -> None:
        namespace, name = change.key
        for one in (change.old, change.new):
            if one is None or one.member is None:
                continue
            key = (namespace, one.group)
            if one is change.new:
                self._members[key][name] = one.member
            else:
                self._members[key].pop(name, None)
                if not self._members[key]:
                    del self._members[key]
            for api in self._kinds:
                self._mark(api, key)

    def _mark(self, api: str, key: Key) -> None:
        if self._marked is not None:
            self._marked[api, key] = None
            self._changed.set()

    # --- what is written --------------------------------------------------------------------------

    async def _reconcile(self, api: str, key: Key, limit: asyncio.Semaphore) -> None:
        kind = self._kinds[api]
        seen = kind.informer.items.get(key)
        if seen is None:
            self._rest(api, key)
            self._pace.forget((api, key))
            return
        members = tuple(self._members.get(key, {}).values())
        legacy = kind.resource.group == LEGACY_PODGROUPS.group
        native = kind.resource.group == dialects.NATIVE_GROUP
        group = PodGroupState(
            seen.namespace, seen.name, seen.min_member, seen.status, legacy, seen.elastic_min
        )
        now = time.time()
        status = group_status(group, members, rfc3339(now))
        told = () if native else group_events(group, status)
        to_write = [one for one in told if one.warning or not seen.is_jobs]
        if native:
            before = seen.status.conditions or []
            conditions = native_conditions(_NATIVE_CONDITION[api], before, status, members)
            status = PodGroupStatus(conditions=conditions)
        if status == seen.status:
            self._rest(api, key)
            return
        wait = self._pace.wait((api, key), _COUNTS)
        if wait and only_counts(seen.status, status):
            self._gather(api, key, wait)
            return
        async with limit:
            try:
                for one in to_write:
                    await self._write_event(kind.resource, seen, one, now)
                await patch_status_of_version(
                    self._client,
                    kind.resource,
                    seen.name,
                    seen.namespace,
                    seen.version,
                    replacing(seen.status, status),
                )
            except NotFound:
                self._rest(api, key)
            except Conflict:
                # What we saw is old. The news marks the group; this is for when it stays away.
                self._again(api, key, self._conflicts.next((api, key)))
            except KubeError as error:
                _log.warning("status of PodGroup %s/%s: %s", *key, error)
                self._again(api, key, self._failures.next((api, key)))
            else:
                self._pace.note((api, key), _COUNTS)
                self._rest(api, key)

    def _gather(self, api: str, key: Key, seconds: float) -> None:
        """Look at a group again when so much time has gone."""
        if (api, key) in self._resting:
            return

        def look() -> None:
            self._resting.discard((api, key))
            self._mark(api, key)

        self._resting.add((api, key))
        asyncio.get_running_loop().call_later(seconds, look)

    def _rest(self, api: str, key: Key) -> None:
        self._conflicts.reset((api, key))
        self._failures.reset((api, key))

    def _again(self, api: str, key: Key, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._mark, api, key)

    async def _write_event(
        self, resource: Resource[Any], seen: Seen, one: GroupEvent, now: float
    ) -> None:
        """Write an event whose name follows from what it says: written twice, it is there once."""
        digest = hashlib.blake2b(
            f"{seen.uid} {one.reason} {one.message}".encode(), digest_size=8
        ).hexdigest()
        stamp = rfc3339(now)
        event: Manifest = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{seen.name[:230]}.{digest}", "namespace": seen.namespace},
            "involvedObject": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "name": seen.name,
                "namespace": seen.namespace,
                "uid": seen.uid,
            },
            "reason": one.reason,
            "message": one.message,
            "type": "Warning" if one.warning else "Normal",
            "source": {"component": names.CONTROLLER},
            "reportingComponent": names.CONTROLLER,
            "reportingInstance": "",
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        try:
            await self._client.create(EVENTS, event)
        except (AlreadyExists, Forbidden):
            return  # it was written before, or the namespace is being deleted


def _custom(group: dialects.PodGroupWire) -> Seen:
    spec = group.spec or dialects.PodGroupSpecWire()
    meta = group.metadata
    return Seen(
        meta.name,
        meta.namespace,
        meta.uid,
        meta.resource_version,
        max(spec.min_member or 1, 1),
        group.status or PodGroupStatus(),
        elastic_minimum(meta.annotations or {})[0],
        any(one.controller and one.kind in KINDS for one in meta.owner_references or ()),
    )


def _native(group: dialects.NativeWire) -> Seen:
    gang = dialects.NativeProjector("")(group)
    meta = group.metadata
    conditions = list(group.status.conditions or ()) if group.status else []
    return Seen(
        meta.name,
        meta.namespace,
        meta.uid,
        meta.resource_version,
        gang.min_member,
        PodGroupStatus(conditions=conditions),
        gang.elastic_min,
    )

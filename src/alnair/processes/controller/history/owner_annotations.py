"""Writes on each owner what its pods used, also those that are gone.

By server-side apply, which could make objects: the controller has the right to patch and not to
create, and each patch carries the owner's uid, so that one of the same name gets nothing.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from typing import Final

import msgspec
from sqlalchemy import Connection, select

from alnair.history.database import queries
from alnair.history.database.tables import JOBS, PODS
from alnair.kube.client import Client
from alnair.kube.errors import Conflict, Forbidden, KubeError, NotFound
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.owners import Discovery
from alnair.model import names
from alnair.model.usage import PodUsage
from alnair.processes.controller.history.job_findings import KIND
from alnair.processes.controller.history.store import Store
from alnair.profiler.owner_summary import PodOfOwner, summary

_log = logging.getLogger(__name__)

#: Seconds between looks at what has changed.
_LOOK: Final = 2.0
#: Patches a second, at most.
_RATE: Final = 5.0
#: Pods of one owner that are read for its summary.
_PODS: Final = 200
#: Owners whose last annotation is remembered.
_REMEMBERED: Final = 5000


class _Changed(msgspec.Struct, frozen=True):
    """A job whose row has changed."""

    uid: str
    is_over: bool


class _Owner(msgspec.Struct, frozen=True):
    """An owner, and what its annotation shall say, but for the time."""

    uid: str
    namespace: str
    group: str
    version: str
    kind: str
    name: str
    pods: list[PodOfOwner]
    count: int
    workload: dict[str, object] | None = None


class OwnerAnnotations:
    """Annotates owners.

    Args:
        client: An open client.
        store: Where it is known what pods used.
        period: Seconds between two annotations of one owner; at its end there is one at once.
    """

    def __init__(self, client: Client, store: Store, period: float) -> None:
        self._client = client
        self._store = store
        self._period = period
        self._discovery = Discovery(client, time.monotonic)
        #: What was written last, and when, by uid.
        self._written: OrderedDict[str, tuple[bytes, float]] = OrderedDict()
        self._due: dict[str, _Changed] = {}

    async def run(self) -> None:
        """Annotate until cancelled."""
        # What changed while nobody looked: as far back as is cheap, and no further.
        since = time.time() - 3600.0
        while True:
            began = time.time()
            for one in await self._store.carry_out(lambda found: _changed(found, since)):  # noqa: B023
                self._due[one.uid] = one
            since = began - 1.0
            await self._annotate_due()
            await asyncio.sleep(min(_LOOK, self._period))

    async def _annotate_due(self) -> None:
        now = time.monotonic()
        for one in list(self._due.values()):
            _, when = self._written.get(one.uid, (b"", float("-inf")))
            if not one.is_over and now - when < self._period:
                continue
            del self._due[one.uid]
            owner = await self._store.carry_out(lambda found: _owner(found, one.uid))  # noqa: B023
            if owner is not None and _says_something(owner) and await self._annotate(owner):
                await asyncio.sleep(1.0 / _RATE)

    async def _annotate(self, owner: _Owner) -> bool:
        """Write an owner's annotation; returns whether the API server was asked."""
        work = b"" if owner.workload is None else msgspec.json.encode(owner.workload)
        same = work + summary(owner.pods, owner.count, "")
        if self._written.get(owner.uid, (b"", 0.0))[0] == same:
            return False
        self._remember(owner.uid, same)
        texts = {}
        if owner.pods:
            at = rfc3339(time.time())
            texts[names.UTILIZATION] = summary(owner.pods, owner.count, at).decode()
        if work:
            texts[names.WORKLOAD] = work.decode()
        try:
            resource = await self._discovery.resource(owner.group, owner.version, owner.kind)
            if resource is None:
                return False
            metadata = {
                "name": owner.name,
                "namespace": owner.namespace,
                "uid": owner.uid,
                "annotations": texts,
            }
            body = {"apiVersion": resource.api_version, "kind": owner.kind, "metadata": metadata}
            await self._client.apply(resource, body, field_manager=names.CONTROLLER_OWNERS)
        except (NotFound, Conflict, Forbidden) as error:
            # It is gone, or another one of its name; or of a kind that the chart does not name.
            _log.debug("annotation of %s %s: %s", owner.kind, owner.name, error)
        except KubeError as error:
            _log.warning("annotation of %s %s: %s", owner.kind, owner.name, error)
            self._written.pop(owner.uid, None)
            self._due[owner.uid] = _Changed(owner.uid, is_over=True)
        return True

    def _remember(self, uid: str, text: bytes) -> None:
        self._written[uid] = text, time.monotonic()
        self._written.move_to_end(uid)
        while len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)


def _says_something(owner: _Owner) -> bool:
    return bool(owner.pods) or owner.workload is not None


def _changed(connection: Connection, since: float) -> list[_Changed]:
    rows = connection.execute(
        select(JOBS.c.uid, JOBS.c.completed).where(JOBS.c.changed >= since, JOBS.c.kind != "Pod")
    )
    return [_Changed(uid, is_over=completed is not None) for uid, completed in rows]


def _owner(connection: Connection, uid: str) -> _Owner | None:
    job = connection.execute(select(JOBS).where(JOBS.c.uid == uid)).mappings().first()
    if job is None:
        return None
    rows = connection.execute(
        select(PODS.c.name, PODS.c.outcome, PODS.c.started, PODS.c.ended, PODS.c.usage)
        .where(PODS.c.job == uid, PODS.c.usage.is_not(None))
        .order_by(PODS.c.used_gpu_seconds.desc(), PODS.c.created, PODS.c.name)
        .limit(_PODS)
    )
    pods = [
        PodOfOwner(
            name,
            outcome,
            ended - started if None not in (started, ended) else None,
            msgspec.convert(used, PodUsage),
        )
        for name, outcome, started, ended, used in rows
    ]
    return _Owner(
        uid=uid,
        namespace=job["namespace"],
        group=job["api_group"],
        version=job["api_version"],
        kind=job["kind"],
        name=job["name"],
        pods=pods,
        count=job["pods"],
        workload=queries.findings(connection, [uid], KIND).get(uid),
    )

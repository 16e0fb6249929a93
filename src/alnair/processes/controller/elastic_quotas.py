"""Keeps the status of every ElasticQuota true: what the pods of its namespace hold.

As the scheduler counts it: requests of the pods that are on nodes and have not ended, whoever
scheduled them, of the resources that the quota names. Pods are followed once there is a quota.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from typing import Final

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import Conflict, KubeError, NotFound
from alnair.kube.informer import Change, ChangeKind, Informer, Key
from alnair.kube.objects import wire
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.resources import ELASTIC_QUOTAS, PODS
from alnair.kube.status import patch_status_of_version

_log = logging.getLogger(__name__)

#: Seconds between passes: no quota is written more often.
_PASS: Final = 1.0

Requests = tuple[tuple[str, int], ...]


class QuotaStatusWire(msgspec.Struct):
    """Status of a quota."""

    used: dict[str, str | int] | None = None


class QuotaWire(msgspec.Struct):
    """A quota with its status."""

    metadata: wire.ObjectMeta
    spec: wire.ElasticQuotaSpecWire | None = None
    status: QuotaStatusWire | None = None


class Seen(msgspec.Struct, frozen=True):
    """A quota as it was last seen: the resources that it names, and what its status says."""

    version: str
    resources: tuple[str, ...]
    used: dict[str, str | int]


class QuotaStatusWriter:
    """Follows quotas and pods, and writes statuses while `run_writes` runs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._held: defaultdict[str, dict[str, Requests]] = defaultdict(dict)
        #: Namespaces and quotas to look at.
        self._marked: dict[str, None] = {}
        self._news = asyncio.Event()
        self._any = asyncio.Event()
        self._projector = PodProjector()
        self._pods = Informer(client, PODS.typed(wire.PodWire), self._requests, self._pod)
        self._quotas = Informer(client, ELASTIC_QUOTAS.typed(QuotaWire), _seen, self._quota)

    async def follow(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._quotas.run())
            await self._any.wait()
            group.create_task(self._pods.run())

    async def run_writes(self) -> None:
        """Write statuses until cancelled; begins with a look at every quota."""
        await self._pods.synced.wait()
        for namespace, _ in self._quotas.items:
            self._mark(namespace)
        while True:
            await self._news.wait()
            self._news.clear()
            marked, self._marked = self._marked, {}
            for key in [key for key in self._quotas.items if key[0] in marked]:
                await self._reconcile(key)
            await asyncio.sleep(_PASS)

    def _requests(self, pod: wire.PodWire) -> Requests:
        seen = self._projector(pod)
        return seen.spec.requests if seen.node and not seen.finished else ()

    def _pod(self, change: Change[Requests]) -> None:
        if change.kind is ChangeKind.SYNCED or (change.old or ()) == (change.new or ()):
            return
        namespace, name = change.key
        if change.new:
            self._held[namespace][name] = change.new
        else:
            self._held[namespace].pop(name, None)
            if not self._held[namespace]:
                del self._held[namespace]
        self._mark(namespace)

    def _quota(self, change: Change[Seen]) -> None:
        if change.new is not None:
            self._any.set()
            self._mark(change.key[0])

    def _mark(self, namespace: str) -> None:
        self._marked[namespace] = None
        self._news.set()

    async def _reconcile(self, key: Key) -> None:
        namespace, name = key
        seen = self._quotas.items.get(key)
        if seen is None:
            return
        held: Counter[str] = Counter()
        for requests in self._held.get(namespace, {}).values():
            held.update(dict(requests))
        used = {resource: _quantity(resource, held[resource]) for resource in seen.resources}
        if used == seen.used:
            return
        status = {"used": {**dict.fromkeys(seen.used), **used}}
        try:
            await patch_status_of_version(
                self._client, ELASTIC_QUOTAS, name, namespace, seen.version, status
            )
        except NotFound:
            return
        except Conflict:
            self._mark(namespace)  # what we saw is old; the news is on its way
        except KubeError as error:
            _log.warning("status of ElasticQuota %s/%s: %s", namespace, name, error)
            self._mark(namespace)


def _seen(quota: QuotaWire) -> Seen:
    spec = quota.spec or wire.ElasticQuotaSpecWire()
    return Seen(
        quota.metadata.resource_version,
        tuple(sorted({*(spec.min or ()), *(spec.max or ())})),
        (quota.status.used if quota.status else None) or {},
    )


def _quantity(resource: str, amount: int) -> str:
    """Return an amount in base units as Kubernetes writes it."""
    if resource == "cpu" and amount % 1000:
        return f"{amount}m"
    return str(amount // 1000 if resource == "cpu" else amount)

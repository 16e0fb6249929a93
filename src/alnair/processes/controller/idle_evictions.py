"""Evicts pods that hold GPUs and do not use them, where they or their namespaces ask for it.

By the API server's leave: what a disruption budget refuses is asked for again at the next look.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from prometheus_client.metrics_core import Metric

from alnair.kube.client import Client
from alnair.kube.errors import Conflict, KubeError, NotFound, TooManyRequests
from alnair.kube.events import EventRecorder, ObjectReference
from alnair.kube.informer import Change, Informer
from alnair.kube.objects import wire
from alnair.kube.objects.load_annotations import agent_lease, project_agent_lease
from alnair.kube.resources import LEASES, NAMESPACES, NODES, PODS
from alnair.kube.timestamps import timestamp
from alnair.model import durations, names
from alnair.model.api_types import PodUtilization
from alnair.profiler.idle_eviction import IdlePod, idle_eviction
from alnair.serving.exposition import counter

#: Seconds between looks.
EVERY: Final = 10.0
#: Seconds after which an agent that did not renew its lease says nothing of now.
_SILENT: Final = 40.0
_WARNED: Final = "GpuIdleEviction"
_EVICTED: Final = "EvictedForIdleGpus"

_log = logging.getLogger(__name__)
_utilization = msgspec.json.Decoder(PodUtilization)


class IdleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds of idleness after which a pod is told, and from then on until it is evicted."""

    after: float
    grace: float


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Pod(msgspec.Struct):
    metadata: wire.ObjectMeta
    spec: _Spec


class _Object(msgspec.Struct):
    metadata: wire.ObjectMeta


class _Namespace(msgspec.Struct, frozen=True):
    choice: str


class IdleEvictions:
    """Follows pods, and evicts while `run_writes` runs.

    Args:
        client: An open client.
        settings: When.
        every: Seconds between looks.
        now: Seconds since the epoch.
    """

    def __init__(
        self,
        client: Client,
        settings: IdleSettings,
        *,
        every: float = EVERY,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._settings = settings
        self._every = every
        self._now = now
        self._recorder = EventRecorder(client, names.CONTROLLER)
        #: Uid → the idleness of which a pod was told, and when.
        self._warned: dict[str, tuple[float, float]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._pods = Informer(
            client, PODS.typed(_Pod), _read, _ignore, identity=lambda pod: pod.uid
        )
        self._namespaces = Informer(client, NAMESPACES.typed(_Object), _choice_of, _ignore)

    async def follow(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(self._namespaces.run())

    async def run_writes(self) -> None:
        """Evict until cancelled."""
        await self._pods.synced.wait()
        await self._namespaces.synced.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            try:
                while True:
                    await self.look()
                    await asyncio.sleep(self._every)
            finally:
                self._warned.clear()

    async def look(self) -> None:
        """Look at all pods once."""
        pods = {pod.uid: pod for pod in self._pods.items.values()}
        self._warned = {
            uid: warned
            for uid, warned in self._warned.items()
            if uid in pods and pods[uid].idle_since == warned[0]
        }
        for pod in pods.values():
            of_namespace = self._namespaces.items.get(("", pod.namespace), _Namespace(""))
            _, warned = self._warned.get(pod.uid, (0.0, None))
            decided = idle_eviction(
                pod,
                of_namespace=of_namespace.choice,
                warned=warned,
                now=self._now(),
                after=self._settings.after,
                grace=self._settings.grace,
            )
            if decided == "warn":
                self._warn(pod)
            elif decided == "evict":
                await self._evict(pod)

    def metrics(self) -> Iterator[Metric]:
        """Return how many were evicted."""
        yield counter(
            "alnair_idle_evictions_total",
            "Evictions of pods that did not use their GPUs; those that a budget refused, too.",
            (
                ({"namespace": namespace, "result": result}, count)
                for (namespace, result), count in sorted(self._counts.items())
            ),
        )

    def _warn(self, pod: IdlePod) -> None:
        self._warned[pod.uid] = pod.idle_since, self._now()
        idle, left = (
            durations.span(self._now() - pod.idle_since),
            durations.span(self._settings.grace),
        )
        said = (
            f"it has not used its GPUs for {idle}: it will be evicted in {left}, unless it uses"
            f" them, or is annotated {names.EVICT_IDLE}: never"
        )
        self._recorder.record(_reference(pod), _WARNED, said, "Warning")

    async def _evict(self, pod: IdlePod) -> None:
        title = f"pod {pod.namespace}/{pod.name}"
        try:
            if not await self._is_measured(pod):
                _log.debug("%s: its node's agent is silent: nobody knows whether it is idle", title)
                return
            await self._client.evict(pod.namespace, pod.name, pod.uid)
        except (NotFound, Conflict):
            return  # it is gone, or another one of its name
        except TooManyRequests as error:
            self._counts[pod.namespace, "refused"] += 1
            _log.info("%s is idle and may not be evicted now: %s", title, error)
            return
        except KubeError as error:
            _log.warning("%s is idle and cannot be evicted: %s", title, error)
            return
        self._counts[pod.namespace, "evicted"] += 1
        idle = durations.span(self._now() - pod.idle_since)
        said = f"it has not used its GPUs for {idle}, and {names.EVICT_IDLE} asks for its eviction"
        self._recorder.record(_reference(pod), _EVICTED, said, "Warning")

    async def _is_measured(self, pod: IdlePod) -> bool:
        """Whether the agent of its node still looks: else what it wrote last says nothing."""
        node = await self._client.get(NODES.typed(_Object), pod.node)
        name = agent_lease(node.metadata.annotations or {}, pod.node)
        try:
            lease = await self._client.get(LEASES.typed(wire.LeaseWire), name, names.NAMESPACE)
        except NotFound:
            return False
        return self._now() - project_agent_lease(lease) <= _SILENT


def _read(pod: _Pod) -> IdlePod:
    meta = pod.metadata
    annotations = meta.annotations or {}
    try:
        since = _utilization.decode(annotations[names.UTILIZATION]).idle_since
    except (KeyError, msgspec.MsgspecError, ValueError, RecursionError):
        since = None
    return IdlePod(
        meta.uid,
        meta.namespace,
        meta.name,
        pod.spec.node_name or "",
        0.0 if meta.deletion_timestamp else timestamp(since or ""),
        annotations.get(names.EVICT_IDLE, ""),
        annotations.get(names.RECLAIMABLE, ""),
    )


def _choice_of(namespace: _Object) -> _Namespace:
    return _Namespace((namespace.metadata.labels or {}).get(names.EVICT_IDLE, ""))


def _ignore(_: Change[IdlePod] | Change[_Namespace]) -> None:
    """What is there is looked at in turn."""


def _reference(pod: IdlePod) -> ObjectReference:
    return ObjectReference("Pod", pod.name, pod.namespace, pod.uid)

"""From the API server's changes to the engine's events."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any

from alnair.kube.client import Client
from alnair.kube.informer import Change, Informer
from alnair.kube.objects import wire
from alnair.kube.objects.load_annotations import project_agent_lease
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.watched_kinds import OBJECTS, PEERS
from alnair.kube.resources import (
    LEASES,
    NODES,
    PODS,
    Resource,
)
from alnair.live.gang_feed import GangFeed
from alnair.model import names
from alnair.model.nodes import Node
from alnair.model.workload import Pod
from alnair.scheduler.engine import events

_log = logging.getLogger(__name__)


class Feed:
    """Follows nodes, pods and PodGroups; keeps what is to be told to the engine.

    While nobody leads, changes are only kept in the informers' caches; `everything` is what a new
    engine is told first.

    Args:
        client: of the API server.
        kinds: those that the profiles read whatever a pod asks for.
    """

    def __init__(self, client: Client, kinds: Collection[str] = ()) -> None:
        self.inbox: deque[events.Event] = deque()
        self.wake = asyncio.Event()
        self.listening = False
        self._nodes = Informer(client, NODES.typed(wire.NodeWire), project_node, self._node)
        self._pods = Informer(
            client, PODS.typed(wire.PodWire), PodProjector(), self._pod, identity=_uid
        )
        self._gangs = GangFeed(client, self._tell)
        self._agents = Informer(
            client,
            LEASES.typed(wire.LeaseWire),
            project_agent_lease,
            self._agent,
            namespace=names.NAMESPACE,
        )
        self._client = client
        self._group = asyncio.TaskGroup()
        peers = (each for each in PEERS if each[0].kind in kinds)
        self._objects = {each[0].kind: self._informer(*each) for each in (*OBJECTS, *peers)}

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with self._group as group:
            group.create_task(self._nodes.run())
            group.create_task(self._pods.run())
            group.create_task(self._gangs.run())
            group.create_task(self._agents.run())
            for informer in self._objects.values():
                group.create_task(informer.run())

    async def follow(self, kinds: Collection[str]) -> None:
        """Follow these kinds too, while `run` runs, and wait until they are known."""
        for resource, project in PEERS:
            kind = resource.kind
            if kind in kinds and kind not in self._objects:
                informer = self._objects[kind] = self._informer(resource, project)
                self._group.create_task(informer.run())
                await self._synced_or_missing(kind, informer)

    async def synced(self) -> None:
        """Wait until all that existed at the start is known."""
        await self._nodes.synced.wait()
        await self._pods.synced.wait()
        await asyncio.gather(
            self._gangs.synced(),
            # Of an agent whose lease is not known, nothing measured counts.
            self._agents.known_soon(),
            *(self._synced_or_missing(*each) for each in self._objects.items()),
        )

    def _informer(
        self, resource: Resource[Any], project: Callable[[Any], Any]
    ) -> Informer[Any, Any]:
        return Informer(self._client, resource, project, self._object(resource.kind))

    async def _synced_or_missing(self, kind: str, informer: Informer[Any, Any]) -> None:
        if not await informer.known_soon():
            # Its CRD may not be installed; when it is, its objects come as news.
            _log.warning("no %s can be read: they are taken as absent", kind)

    def put(self, event: events.Event) -> None:
        """Tell the engine something, at its next step."""
        self.inbox.append(event)
        self.wake.set()

    def pod(self, pod: Pod) -> Pod | None:
        """Return the pod as it is now; None if it is gone."""
        found = self._pods.items.get((pod.namespace, pod.name))
        return found if found is not None and found.uid == pod.uid else None

    def named(self, namespace: str, name: str) -> Pod | None:
        """Return the pod of this name as it is now; None if there is none."""
        return self._pods.items.get((namespace, name))

    def node(self, name: str) -> Node | None:
        """Return a node as it is now; None if it is gone."""
        return self._nodes.items.get(("", name))

    def object(self, kind: str, namespace: str, name: str) -> Any:
        """Return an object of a further kind as it is now; None if there is none."""
        return self._objects[kind].items.get((namespace, name))

    def everything(self) -> Iterator[events.Event]:
        """Return all that is known now: nodes first, so that pods find theirs."""
        for (_, lease), renewed in self._agents.items.items():
            if lease.startswith(names.AGENT_LEASE_PREFIX):
                yield events.AgentAlive(lease, renewed)
        for node in self._nodes.items.values():
            yield events.NodeChanged(node)
        for kind, informer in self._objects.items():
            for (namespace, name), value in informer.items.items():
                yield events.ObjectChanged(kind, namespace, name, value)
        for gang in self._gangs.everything():
            yield events.GangChanged(gang)
        for pod in sorted(self._pods.items.values(), key=_created):
            yield events.PodChanged(pod)

    def _agent(self, change: Change[float]) -> None:
        name = change.key[1]
        if change.new is not None and name.startswith(names.AGENT_LEASE_PREFIX):
            self._tell(events.AgentAlive(name, change.new))

    def _node(self, change: Change[Node]) -> None:
        if change.new is not None:
            if change.new != change.old:  # most changes are heartbeats
                self._tell(events.NodeChanged(change.new))
                _complain(change.old, change.new)
        elif change.old is not None:
            self._tell(events.NodeGone(change.old.name))

    def _pod(self, change: Change[Pod]) -> None:
        if change.new is not None:
            if change.new != change.old:
                self._tell(events.PodChanged(change.new))
        elif change.old is not None:
            self._tell(events.PodGone(change.old.uid))

    def _object(self, kind: str) -> Callable[[Change[Any]], None]:
        def changed(change: Change[Any]) -> None:
            if change.new is not None:
                if change.new != change.old:
                    self._tell(events.ObjectChanged(kind, *change.key, change.new))
                    _say_left_out(kind, change)
            elif change.old is not None:
                self._tell(events.ObjectGone(kind, *change.key))

        return changed

    def _tell(self, event: events.Event) -> None:
        if self.listening:
            self.put(event)


def _complain(old: Node | None, new: Node) -> None:
    """Say once which load reports of a node are ignored."""
    if new.ignored_loads and (old is None or old.ignored_loads != new.ignored_loads):
        _log.warning("node %s: %s", new.name, new.ignored_loads)


def _say_left_out(kind: str, change: Change[Any]) -> None:
    """Say once that an object cannot be read, and so does not count."""
    problem = getattr(change.new, "problem", "")
    if problem and problem != getattr(change.old, "problem", ""):
        where = "/".join(part for part in change.key if part)
        _log.warning("%s %s is left out until it is put right: %s", kind, where, problem)


def _uid(pod: Pod) -> str:
    return pod.uid


def _created(pod: Pod) -> float:
    return pod.created

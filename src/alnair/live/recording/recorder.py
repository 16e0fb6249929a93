"""Looks at a cluster: once, or for as long as a record is kept."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final, TypeVar

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.pod_groups.dialects import GangProjector, PodGroupWire
from alnair.kube.resources import (
    LEGACY_PODGROUPS,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    Manifest,
    Resource,
)
from alnair.live.list_and_watch import Batch, follow
from alnair.live.recording.decisions import decided
from alnair.live.recording.record_file import RecordError, RecordFile
from alnair.live.recording.record_lines import (
    GroupRecord,
    NodeRecord,
    NodeWire,
    PodReader,
    PodRecord,
    PodWire,
    node_record,
    utilization,
)
from alnair.live.recording.recorded_cluster import Head, Known, Line

T = TypeVar("T")
#: Seconds for which lines are gathered before they are written and synced together.
BATCH: Final = 0.5
#: Seconds without news after which a line says that somebody still looks.
ALIVE: Final = 10.0
_GROUPS: Final = (PODGROUPS, LEGACY_PODGROUPS)
_PODS: Final = PODS.typed(PodWire)
_NODES: Final = NODES.typed(NodeWire)


class Notes:
    """What was noted last of everything that is there; makes the lines of what is new.

    Args:
        before: What an earlier record says was there.
    """

    def __init__(self, before: Known | None = None) -> None:
        self.lines: list[Line] = []
        self._read = PodReader()
        self._pods: dict[str, tuple[PodRecord, float | None]] = {}
        self._nodes: dict[str, NodeRecord] = {}
        self._groups: dict[tuple[str, str], GroupRecord] = {}
        self._decided: tuple[int, float] | None = None
        # What went while nobody looked was there last when somebody looked last.
        self._seen = before.last if before else 0.0
        self._unseen_pods: set[str] = set()
        self._unseen_nodes: set[str] = set()
        if before is not None:
            for uid, pod in before.pods.items():
                if pod.gone is None:
                    self._pods[uid] = (pod.record, pod.utils[-1][1] if pod.utils else None)
            self._unseen_pods = set(self._pods)
            self._unseen_nodes = {n for n, node in before.nodes.items() if node.up[-1][1] is None}

    def counts(self) -> tuple[int, int]:
        """Return how many nodes and pods there are."""
        return len(self._nodes), len(self._pods)

    def pods(self, batch: Batch[PodWire], now: float) -> None:
        """Note a list of pods, or changes of some."""
        if batch.listed is not None:
            there = {pod.metadata.uid for pod in batch.listed}
            for uid in sorted(self._pods.keys() - there):
                self._pod_gone(uid, now, self._seen if uid in self._unseen_pods else 0.0)
            self._unseen_pods.clear()
            for pod in batch.listed:
                self._pod(pod, now)
        for event in batch.events:
            self._pod(event.object, now)
            if event.type == "DELETED":
                self._pod_gone(event.object.metadata.uid, now, 0.0)

    def _pod(self, pod: PodWire, now: float) -> None:
        record, util = self._read(pod), utilization(pod)
        before, used = self._pods.get(record.uid, (None, None))
        if before != record:
            self.lines.append(Line(t=now, pod=record))
        if util is not None and util != used:
            self.lines.append(Line(t=now, util=(record.uid, util)))
        self._pods[record.uid] = (record, util if util is not None else used)

    def _pod_gone(self, uid: str, now: float, seen: float) -> None:
        if self._pods.pop(uid, None) is not None:
            self.lines.append(Line(t=now, gone_pod=uid, seen=seen))

    def nodes(self, batch: Batch[NodeWire], now: float) -> None:
        """Note a list of nodes, or changes of some."""
        if batch.listed is not None:
            there = {node.metadata.name for node in batch.listed}
            for name in sorted((self._nodes.keys() | self._unseen_nodes) - there):
                is_late = self._nodes.pop(name, None) is None
                self.lines.append(Line(t=now, gone_node=name, seen=self._seen if is_late else 0.0))
            self._unseen_nodes.clear()
            for node in batch.listed:
                self._node(node, now)
        for event in batch.events:
            name = event.object.metadata.name
            self._node(event.object, now)
            if event.type == "DELETED" and self._nodes.pop(name, None) is not None:
                self.lines.append(Line(t=now, gone_node=name))

    def _node(self, node: NodeWire, now: float) -> None:
        record = node_record(node)
        if self._nodes.get(record.name) != record:
            self._nodes[record.name] = record
            self.lines.append(Line(t=now, node=record))

    def groups(self, batch: Batch[PodGroupWire], api_version: str, now: float) -> None:
        """Note PodGroups; those that are gone are kept, as their pods are."""
        project = GangProjector(api_version)
        for group in (*(batch.listed or ()), *(event.object for event in batch.events)):
            gang = project(group)
            record = GroupRecord(gang.namespace, gang.name, gang.min_member)
            if self._groups.get((gang.namespace, gang.name)) != record:
                self._groups[gang.namespace, gang.name] = record
                self.lines.append(Line(t=now, group=record))

    def decided(self, counted: tuple[int, float], now: float) -> None:
        """Note how many decisions the scheduler has made, and their seconds."""
        if counted != self._decided:
            self._decided = counted
            self.lines.append(Line(t=now, decided=counted))

    def taken(self) -> list[Line]:
        """Return the lines since the last call."""
        found, self.lines = self.lines, []
        return found


async def look(client: Client) -> Known:
    """Return what one look at a cluster tells."""
    notes = Notes()
    for kind in _GROUPS:
        listed = await _listed(client, kind.typed(PodGroupWire))
        notes.groups(Batch(listed, [], 0.0, 0.0), kind.api_version, time.time())
    pods = (await client.list(_PODS)).items
    notes.pods(Batch(pods, [], 0.0, 0.0), time.time())
    # Nodes last: each pod's node is then among them, unless it is really gone.
    nodes = (await client.list(_NODES)).items
    now = time.time()
    notes.nodes(Batch(nodes, [], 0.0, 0.0), now)
    known = Known()
    for line in (*notes.taken(), Line(t=now)):
        known.take(line)
    return known


async def _listed(client: Client, kind: Resource[T]) -> list[T]:
    try:
        return (await client.list(kind)).items
    except NotFound:
        return []  # the kind is not installed: there are no objects of it


async def record(
    client: Client,
    file: RecordFile,
    stop: Callable[[], Awaitable[object]],
    tell: Callable[[int, int], None],
) -> None:
    """Append all that happens in a cluster to a record, until `stop` returns.

    Args:
        client: An open client.
        file: The record, which goes on where it ended.
        stop: Awaited; the record ends when it returns.
        tell: Called with the numbers of nodes and pods once all are read.

    Raises:
        RecordError: the file is a record of another cluster, or damaged.
        OSError: it cannot be written.
    """
    cluster = (await client.get(NAMESPACES, "kube-system"))["metadata"]["uid"]
    recording = _Recording(client, file, _begun(file, cluster))
    ended = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(recording.write(ended))
        watching = [group.create_task(task) for task in recording.watches(tell)]
        await stop()
        for task in watching:
            task.cancel()
        ended.set()
        await writing


def _begun(file: RecordFile, cluster: str) -> Notes:
    """Return what was there when the record ended, or begin one."""
    before = file.begin()
    if before.head is None:
        file.append([Line(t=time.time(), head=Head(cluster=cluster))])
    elif before.head.cluster != cluster:
        raise RecordError(f"{file.path}: this is a record of another cluster: name another file")
    return Notes(before)


class _Recording:
    """Watches, and the one task that writes."""

    def __init__(self, client: Client, file: RecordFile, notes: Notes) -> None:
        self._client = client
        self._file = file
        self._notes = notes
        self._read = [asyncio.Event() for _ in range(2 + len(_GROUPS))]

    def watches(self, tell: Callable[[int, int], None]) -> list[Coroutine[None, None, None]]:
        """Return what runs until it is cancelled."""
        groups = [
            self._groups(kind, read) for kind, read in zip(_GROUPS, self._read[2:], strict=True)
        ]
        return [self._pods(), self._nodes(), *groups, self._decisions(), self._all_read(tell)]

    async def _pods(self) -> None:
        async for batch in follow(self._client, _PODS):
            self._notes.pods(batch, time.time())
            self._read[0].set()

    async def _nodes(self) -> None:
        async for batch in follow(self._client, _NODES):
            self._notes.nodes(batch, time.time())
            self._read[1].set()

    async def _groups(self, kind: Resource[Manifest], read: asyncio.Event) -> None:
        try:
            async for batch in follow(self._client, kind.typed(PodGroupWire)):
                self._notes.groups(batch, kind.api_version, time.time())
                read.set()
        except NotFound:
            read.set()  # the kind is not installed: there are no objects of it

    async def _decisions(self) -> None:
        while True:
            if (counted := await decided(self._client)) is not None:
                self._notes.decided(counted, time.time())
            await asyncio.sleep(ALIVE)

    async def _all_read(self, tell: Callable[[int, int], None]) -> None:
        for event in self._read:
            await event.wait()
        tell(*self._notes.counts())

    async def write(self, ended: asyncio.Event) -> None:
        """Write what is new, in batches, until it has ended; and what is new then."""
        written = time.monotonic()
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), BATCH)
            lines = self._notes.taken()
            if lines or ended.is_set() or time.monotonic() - written >= ALIVE:
                await asyncio.to_thread(self._file.append, [*lines, Line(t=time.time())])
                written = time.monotonic()
            if ended.is_set():
                return

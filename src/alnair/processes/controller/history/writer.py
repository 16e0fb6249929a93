"""Follows pods, their owners and nodes, and writes their lives while it leads."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec

from alnair.history.database import facts, writing
from alnair.history.database.rows import Changes, Gone, JobRow, PodRow
from alnair.history.history import End
from alnair.kube.client import Client
from alnair.kube.errors import KubeError
from alnair.kube.informer import Change, ChangeKind, Informer
from alnair.kube.owners import OwnerWalk
from alnair.kube.resources import NODES, PODS
from alnair.live.recording.record_lines import NodeRecord, NodeWire, node_record
from alnair.model.owners import Owner, OwnerRef
from alnair.processes.controller.history.seen import (
    PodSeen,
    RankedPodWire,
    SeePods,
    job_row,
    node_row,
    outcome,
    pod_row,
)
from alnair.processes.controller.history.store import Store

_log = logging.getLogger(__name__)

#: Seconds in which changes are gathered before they are written together.
GATHER: Final = 0.5
#: Seconds without news after which it is noted that somebody still looks.
ALIVE: Final = 10.0
#: Pods in one transaction.
_AT_ONCE: Final = 500
#: Pods that wait to be written while the history is away, some kilobytes each.
MOST: Final = 50_000
#: Owners that are asked for at once.
_WALKS: Final = 8

GroupOf = Callable[[str, str], OwnerRef | None]


class _Left(msgspec.Struct, frozen=True):
    """A pod that is gone: as it was last, and since when."""

    pod: PodSeen
    when: float


class LifeWriter:
    """Follows pods and nodes, and writes what became of them while `run_writes` runs.

    Args:
        client: An open client.
        store: Where to write.
        group_of: Finds the PodGroup of a namespace and name.
        least_of: How many pods it needs, 0 if that is not known.
    """

    def __init__(
        self,
        client: Client,
        store: Store,
        group_of: GroupOf,
        least_of: Callable[[str, str], int] = lambda *_: 0,
    ) -> None:
        self._store = store
        self._group_of = group_of
        self._least_of = least_of
        self._owners = OwnerWalk(client, time.monotonic)
        #: By uid, what is to be written; None while another process leads.
        self._pending: dict[str, PodSeen | _Left] | None = None
        self._pending_nodes: dict[str, NodeRecord] = {}
        #: The job of each pod that is there and was written.
        self._jobs: dict[str, str] = {}
        self._news = asyncio.Event()
        #: Whether all that was seen is written.
        self._idle = asyncio.Event()
        #: Pods that were let go of, as too many waited: what the history knows of them is compared.
        self._overrun = 0
        self.pods = Informer(
            client,
            PODS.typed(RankedPodWire),
            SeePods(),
            self._pod,
            identity=lambda pod: pod.record.uid,
        )
        self.nodes = Informer(client, NODES.typed(NodeWire), node_record, self._node)

    def job_of(self, uid: str) -> str | None:
        """Return the uid of a pod's job; None while it is not written, or another one leads."""
        return self._jobs.get(uid)

    async def follow(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.pods.run())
            group.create_task(self.nodes.run())

    def _pod(self, change: Change[PodSeen]) -> None:
        if self._pending is None:
            return  # who leads begins with all that is there
        old, new = change.old, change.new
        if old is not None and new is not None and old == _with_workload(new, old):
            return  # what it does is written by who looks at jobs
        if change.new is not None:
            self._pending[change.new.record.uid] = change.new
        elif change.old is not None:
            self._pending[change.old.record.uid] = _Left(change.old, time.time())
        if len(self._pending) > MOST:
            self._pending.pop(next(iter(self._pending)))
            self._overrun += 1
        self._has_news()

    def _has_news(self) -> None:
        self._news.set()
        self._idle.clear()

    def _node(self, change: Change[NodeRecord]) -> None:
        if self._pending is None or change.kind is ChangeKind.SYNCED:
            return
        if change.new is not None:
            self._pending_nodes[change.new.name] = change.new
        elif change.old is not None:
            self._pending_nodes[change.old.name] = msgspec.structs.replace(
                change.old, ready=False, since=time.time()
            )
        self._has_news()

    async def run_writes(self) -> None:
        """Write until cancelled; begins with what happened while nobody wrote."""
        await self.nodes.synced.wait()
        await self.pods.synced.wait()
        self._pending = {}
        try:
            await self._catch_up()
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(ALIVE):
                        await self._news.wait()
                    await asyncio.sleep(GATHER)
                self._news.clear()
                await self._write_pending()
                if self._overrun:
                    _log.warning("%d changes of pods were too many to wait", self._overrun)
                    self._overrun = 0
                    await self._catch_up()
                if not self._pending and not self._pending_nodes:
                    self._idle.set()
        finally:
            self._pending = None
            self._idle.set()
            self._pending_nodes.clear()
            self._jobs.clear()

    async def settled(self) -> None:
        """Wait until what was seen so far is written, while `run_writes` runs."""
        if self._pending is not None:
            await self._idle.wait()

    async def _catch_up(self) -> None:
        """Take over: what the history says is there and is not, went while nobody looked."""
        assert self._pending is not None
        known = await self._store.carry_out(writing.open_pods)
        looked = await self._store.carry_out(facts.looked)
        there = {pod.record.uid for pod in self.pods.items.values()}
        self._jobs.update((uid, job) for uid, job in known.items() if uid in there)
        now = time.time()
        # A clock that was set back since then says no time that is yet to come.
        seen = min(looked or now, now)
        gone = [Gone(uid, seen, "deleted") for uid in known if uid not in there]
        for begin in range(0, len(gone), _AT_ONCE):
            await self._store.write(Changes(gone=gone[begin : begin + _AT_ONCE]))
        for pod in self.pods.items.values():
            self._pending.setdefault(pod.record.uid, pod)
        self._pending_nodes.update((name, node) for (_, name), node in self.nodes.items.items())
        self._has_news()

    async def _write_pending(self) -> None:
        assert self._pending is not None
        pending, self._pending = self._pending, {}
        nodes, self._pending_nodes = self._pending_nodes, {}
        now = time.time()
        rows = [node_row(node, now) for node in nodes.values()]
        items = list(pending.values())
        for begin in range(0, len(items) or 1, _AT_ONCE):
            some = items[begin : begin + _AT_ONCE]
            changes = await self._changes(some)
            changes.nodes, rows = rows, []
            changes.looked = now
            left = await self._store.write(changes)
            for uid in left:
                self._jobs.pop(uid, None)
            for one in some:
                if _pod_of(one).record.uid in left:
                    self._again(one)
            for gone in changes.gone:
                self._jobs.pop(gone.uid, None)

    async def _changes(self, items: list[PodSeen | _Left]) -> Changes:
        changes = Changes()
        jobs: dict[str, JobRow] = {}
        limit = asyncio.Semaphore(_WALKS)

        async def take(one: PodSeen | _Left) -> None:
            pod = _pod_of(one)
            async with limit:
                row = await self._row(pod, jobs)
            if row is None:
                self._again(one)
                return
            changes.pods.append(row)
            if isinstance(one, _Left):
                changes.gone.append(Gone(pod.record.uid, one.when, self._how(pod)))

        async with asyncio.TaskGroup() as group:
            for one in items:
                group.create_task(take(one))
        changes.jobs = list(jobs.values())
        return changes

    def _again(self, one: PodSeen | _Left) -> None:
        """Look at a pod once more, unless there is something newer of it."""
        pod = _pod_of(one)
        if self._pending is not None:
            self._pending.setdefault(pod.record.uid, one)
            asyncio.get_running_loop().call_later(1.0, self._has_news)

    async def _row(self, pod: PodSeen, jobs: dict[str, JobRow]) -> PodRow | None:
        """Return a pod's row, and note its job's; None if its owners cannot be asked for now."""
        record = pod.record
        job = self._jobs.get(record.uid)
        if job is None:
            try:
                chain = await self._owners.chain(self._bottom(pod))
            except KubeError as error:
                _log.warning("owners of pod %s/%s: %s", record.namespace, record.name, error)
                return None
            least = self._least_of(record.namespace, record.group) if record.group else 0
            row = job_row(chain, pod, least)
            job = self._jobs[record.uid] = row.uid
            jobs[job] = row
        return pod_row(pod, job, self.nodes.items.get(("", record.node)), time.time())

    def _bottom(self, pod: PodSeen) -> Owner:
        """Return where the walk begins: a pod that nothing controls is its PodGroup's."""
        if pod.owner.controller is None and pod.record.group:
            group = self._group_of(pod.record.namespace, pod.record.group)
            return msgspec.structs.replace(pod.owner, controller=group)
        return pod.owner

    def _how(self, pod: PodSeen) -> End:
        """Return how a pod ended that is gone."""
        record = pod.record
        if how := outcome(record) or record.cut:
            return how
        node = self.nodes.items.get(("", record.node))
        return "lost" if record.node and (node is None or not node.ready) else "deleted"


def _with_workload(pod: PodSeen, of: PodSeen) -> PodSeen:
    return msgspec.structs.replace(pod, workload=of.workload)


def _pod_of(one: PodSeen | _Left) -> PodSeen:
    return one if isinstance(one, PodSeen) else one.pod

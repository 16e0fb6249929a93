"""Pods come and go on a real node, and its processes are ended in between; all the time judged.

All choices come from one seeded source.
"""

import asyncio
import contextlib
import math
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from alnair.kube.client import Client
from alnair.kube.errors import KubeError, NotFound
from alnair.kube.resources import NODES, PODS, Manifest
from alnair.local.components import supervision
from alnair.local.components.components import ALNAIR_SCHEDULER
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node.settings import NAME
from alnair.local.report import NO_REPORT
from kit.real_node import node_shell
from kit.real_node.gpu_books import GpuBooks
from kit.real_node.inventory import described
from kit.real_node.judge import Judge, given, is_cut_off, states
from kit.real_node.tenants import Due, Tenant, Tenants

#: Pods that there are at once.
ALIVE = 14
#: Seconds between looks, and mean ones between arrivals and between restarts.
LOOK, ARRIVAL, RESTART = 0.5, 0.4, 4.0
#: Seconds after which a pod that could run and does not is stuck.
STUCK = 60.0
RESTARTED = ("agent", "kubelet", "containerd", ALNAIR_SCHEDULER)
#: In this order at first, so that a short churn has the worst of them.
_RESTARTS = [(name, number) for number in (signal.SIGKILL, signal.SIGTERM) for name in RESTARTED]
#: Seconds in which all see that the agent is back.
_AWAY = 3.0
SLICES = "run/alnair/agent/containers"


class NodeChurn:
    """All that happens, and what is seen of it.

    Args:
        cluster: With a real node, and our scheduler.
        client: Of an administrator.
        namespace: Of all pods.
        seed: Of all choices.
        books: The driver's.
    """

    def __init__(
        self, cluster: LocalCluster, client: Client, namespace: str, seed: int, books: GpuBooks
    ) -> None:
        self.done: Counter[str] = Counter()
        self.judge = Judge(books.ask("gpus"))
        #: Longest seconds from being bound to the first container's start, and to being bound.
        self.longest = {"to start": 0.0, "to be bound": 0.0}
        self._cluster, self._client, self._namespace = cluster, client, namespace
        self._books = books
        self._chance = random.Random(seed)
        self._tenants = Tenants(self._chance, namespace)
        #: By name: those that are there, or go.
        self._there: dict[str, Tenant] = {}
        self._leaving: set[str] = set()
        #: By name: all that there ever were, as they were seen last.
        self._seen: dict[str, Manifest] = {}
        #: By name: since when (monotonic) it could be bound, or could start.
        self._waits: dict[str, tuple[str, float]] = {}
        self._heard: set[tuple[str, str]] = set()
        #: When (monotonic) the agent was back last; infinite while it is away.
        self._agent_away = -math.inf
        self._is_closed = False
        #: Restarts to come: each kind once, before any comes again.
        self._deck = list(_RESTARTS)
        self._containers = node_shell.root(cluster.layout.folder) / SLICES

    async def run(self, pods: int) -> None:
        """Let so many pods come and go, and wait until the last has gone."""
        async with asyncio.TaskGroup() as group:
            stop, gone = asyncio.Event(), asyncio.Event()
            group.create_task(self._often(LOOK, self.look, gone))
            restarts = group.create_task(self._often(RESTART, self._restart, stop))
            while self.done["pods"] < pods:
                await asyncio.sleep(ARRIVAL * self._chance.uniform(0.2, 1.8))
                if len(self._there) < ALIVE:
                    await self._come()
                elif self._chance.random() < 0.3:
                    await self._delete(self._chance.choice(sorted(self._there)))
            stop.set()
            await restarts  # what it ended runs again
            await self._wait_for_all()
            gone.set()

    async def look(self) -> None:
        """Judge this instant."""
        tags = [due.tag for tenant in self._there.values() for due in tenant.due.values()]
        created = set(self._seen)
        # The driver first: whoever it knows is known to the API server after that, too.
        books = await asyncio.to_thread(self._books.ask, "tags", tags)
        processes = await asyncio.to_thread(self._books.ask, "pods")
        listed = (await self._client.list(PODS, self._namespace)).items
        pods = {pod["metadata"]["name"]: pod for pod in listed}
        self._seen |= pods
        self.judge.instant(self._there, self._seen, books, processes)
        for name, tenant in list(self._there.items()):
            pod = pods.get(name)
            if pod is None:
                if name in created:
                    await self._gone(tenant)
                continue
            self._follow(tenant, pod)
            for container in given(pod):
                folder = self._containers / f"{pod['metadata']['uid']}-{container}"
                if tenant.due[container].memory_mib and folder.exists():
                    self.judge.page(tenant, container, pod, folder)
            await self._hear(tenant, pod)
            if pod["status"]["phase"] in ("Succeeded", "Failed"):
                self._ended(tenant, pod)
                await self._delete(name)

    # ---- pods ------------------------------------------------------------------------------------

    async def _come(self) -> None:
        tenant = self._tenants.make()
        for due in tenant.due.values():
            limit = due.memory_mib << 20 or max(self.judge.gpus.values())
            await asyncio.to_thread(self._books.ask, "watch", due.tag, limit)
        self._there[tenant.name] = tenant
        self._waits[tenant.name] = "to be bound", time.monotonic()
        self._seen[tenant.name] = await self._client.create(PODS, tenant.manifest)
        self.done["pods"] += 1
        self.done[tenant.kind] += 1

    async def _delete(self, name: str) -> None:
        if name not in self._leaving:
            self._leaving.add(name)
            with contextlib.suppress(NotFound):
                await self._client.delete(PODS, name, self._namespace)
            self.done["deletions"] += 1

    async def _gone(self, tenant: Tenant) -> None:
        name, tags = tenant.name, [due.tag for due in tenant.due.values()]
        books = await asyncio.to_thread(self._books.ask, "tags", tags)
        if any(row["used"] for account in books.values() for row in account.values()):
            self.judge.fault(f"outlived {name}", f"the pod is gone, its memory is not: {books}")
            return
        if name not in self._leaving:
            self.judge.fault(f"lost {name}", f"nobody deleted it: {self._seen.get(name)}")
        self.judge.account(tenant, self._seen[name], books)
        del self._there[name]
        self._leaving.discard(name)
        self._waits.pop(name, None)
        self._tenants.take_back(tenant)

    def _ended(self, tenant: Tenant, pod: Manifest) -> None:
        status = pod["status"]
        if tenant.name in self._leaving:
            return
        if status.get("reason") == "UnexpectedAdmissionError" and self._is_served_again:
            # The kubelet refuses for good what it admits while nobody serves the resource.
            self.done["refused while the agent was away"] += 1
            return
        if status["phase"] == "Failed" and is_cut_off(pod):
            self.done["cut off by the end of kubelet or containerd"] += 1
            return
        self.done[status["phase"].lower()] += 1
        if status["phase"] == "Failed":
            said = {k: status.get(k) for k in ("reason", "message", "containerStatuses")}
            self.judge.fault(f"failed {tenant.name}", f"{said}")

    def _follow(self, tenant: Tenant, pod: Manifest) -> None:
        """Take note of how long it waits, and for what."""
        name, now = tenant.name, time.monotonic()
        if name in self._leaving or name not in self._waits:
            return
        kind, since = self._waits[name]
        is_bound = bool(pod["spec"].get("nodeName"))
        has_room = not self._is_closed and self._has_room(tenant)
        if kind == "to be bound" and not is_bound and not has_room:
            self._waits[name] = kind, now  # it waits for others
            return
        self.longest[kind] = max(self.longest[kind], now - since)
        if kind == "to be bound" and is_bound:
            self._waits[name] = "to start", now
        elif kind == "to start" and any("waiting" not in one for one in states(pod).values()):
            del self._waits[name]
        elif now - since > STUCK:
            self.judge.fault(f"stuck {name}", f"{kind} for {now - since:.0f} s: {pod['status']}")

    def _has_room(self, wanted: Tenant) -> bool:
        """Whether it could be bound: GPUs are free that nobody is assigned."""
        taken: dict[str, list[Due]] = {uuid: [] for uuid in self.judge.gpus}
        for name, tenant in self._there.items():
            for container, uuids in given(self._seen.get(name, {"metadata": {}})).items():
                for uuid in uuids:
                    taken[uuid].append(tenant.due[container])
        whole = sum(due.whole for due in wanted.due.values())
        parts = [due for due in wanted.due.values() if due.memory_mib]
        free = sum(not there for there in taken.values())
        if not parts:
            return free >= whole
        return any(
            sum(due.memory_mib for due in (*there, *parts)) << 20 <= self.judge.gpus[uuid]
            and sum(due.compute for due in (*there, *parts)) <= 100
            and not any(due.whole for due in there)
            and free - (not there) >= whole
            for uuid, there in taken.items()
        )

    async def _hear(self, tenant: Tenant, pod: Manifest) -> None:
        """Read what programs said that have started."""
        for container, state in states(pod).items():
            if "waiting" in state or (tenant.name, container) in self._heard:
                continue
            path = PODS.item(tenant.name, self._namespace, "log")
            with contextlib.suppress(KubeError):
                found = await self._client.raw("GET", path, query={"container": container})
                if b"\n" in found:
                    self._heard.add((tenant.name, container))
                    self.judge.program(tenant, container, pod, found.decode())

    async def _wait_for_all(self) -> None:
        until = time.monotonic() + 2 * STUCK
        while self._there:
            if time.monotonic() > until:
                for name in self._there:
                    self.judge.fault(f"left {name}", f"{self._seen.get(name)}")
                return
            await asyncio.sleep(LOOK)

    # ---- faults ----------------------------------------------------------------------------------

    async def _restart(self) -> None:
        """End one of the node's processes, and start it again a moment later."""
        if not self._deck:
            self._deck = list(_RESTARTS)
            self._chance.shuffle(self._deck)
        name, number = self._deck.pop(0)
        self.done[f"{name} {number.name}"] += 1
        if name == "agent":
            await self._end_agent(number)
            return
        await self._cluster.stop(name, number)
        await asyncio.sleep(self._chance.uniform(0, 2))
        await self._start(name)

    async def _end_agent(self, number: signal.Signals) -> None:
        """End it by a crash, or as `docs/how-to/remove-the-agent.md` says: on a closed node."""
        is_crash = number == signal.SIGKILL
        if is_crash:
            self._agent_away = math.inf
        else:
            await self._close_node(True)
            await asyncio.sleep(LOOK)  # what was bound before is admitted
        await self._cluster.stop("agent", number)
        await asyncio.sleep(self._chance.uniform(0, 2))
        await self._start("agent")
        if is_crash:
            self._agent_away = time.monotonic()
        else:
            await described(self._client)
            await self._close_node(False)

    async def _close_node(self, is_closed: bool) -> None:
        self._is_closed = is_closed
        patch = {"spec": {"unschedulable": is_closed or None}}
        await self._client.merge_patch(NODES, NAME, patch)

    async def _start(self, name: str) -> None:
        if name == ALNAIR_SCHEDULER:
            await self._cluster.start(name)
            return
        node = self._cluster.real_node()
        assert node is not None
        wanted = next(one for one in node.components() if one.name == name)
        await supervision.ensure(wanted, self._cluster.layout, NO_REPORT)

    @property
    def _is_served_again(self) -> bool:
        """Whether the agent is away by a crash, or was a moment ago."""
        return time.monotonic() - self._agent_away < _AWAY

    async def _often(
        self, mean: float, happen: Callable[[], Awaitable[None]], until: asyncio.Event
    ) -> None:
        while not until.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(until.wait(), mean * self._chance.uniform(0.7, 1.3))
                return
            await happen()

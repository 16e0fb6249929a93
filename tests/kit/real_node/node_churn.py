"""Pods come and go on a real node, and its processes are ended in between; all the time judged.

All choices come from one seeded source.
"""

import asyncio
import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime

import grpc

from alnair.kube.client import Client
from alnair.kube.errors import KubeError, NotFound
from alnair.kube.resources import EVENTS, NODES, PODS, Manifest
from alnair.local.components import supervision
from alnair.local.components.components import ALNAIR_SCHEDULER
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node.settings import NAME
from alnair.local.report import NO_REPORT
from alnair.model import names
from kit.real_node import node_shell
from kit.real_node.gpu_books import GpuBooks
from kit.real_node.inventory import described
from kit.real_node.judge import Judge, cut_off, given, states
from kit.real_node.outages import Outages, registered, second
from kit.real_node.tenants import Due, Tenant, Tenants
from kit.upgrades.kubelet_offer import POD_RESOURCES, asking

#: Pods that there are at once.
ALIVE = 14
#: Seconds between looks, and mean ones between arrivals and between restarts.
LOOK, ARRIVAL, RESTART = 0.5, 0.4, 4.0
#: Seconds after which a pod that could run and does not is stuck, and slow.
STUCK, SLOW = 60.0, 15.0
RESTARTED = ("agent", "kubelet", "containerd", ALNAIR_SCHEDULER)
#: In this order at first, so that a short churn has the worst of them.
_RESTARTS = [(name, number) for number in (signal.SIGKILL, signal.SIGTERM) for name in RESTARTED]
#: Seconds after a restart in which the kubelet tells what it made of containers.
_TOLD = 10.0
#: Part of the deletions that are by force, and seconds in which a kubelet has heard of one.
_BY_FORCE, _HEARD = 0.25, 3.0
#: Reason of pods that the kubelet refuses for good as nobody serves what they ask for.
_REFUSED = "UnexpectedAdmissionError"
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
        #: Longest seconds: of pods until they are bound, and from then to their first container,
        #: without and with those in which no kubelet served; from a deletion by force to the last
        #: process; and of the agent until it serves.
        self.longest = {
            "to be bound": 0.0,
            "to start": 0.0,
            "with the kubelet's starts": 0.0,
            "by force to end": 0.0,
            "to serve": 0.0,
        }
        #: By name, of pods that were slow to start: seconds, and the events that tell why.
        self.slow: dict[str, tuple[float, list[Manifest]]] = {}
        self._cluster, self._client, self._namespace = cluster, client, namespace
        self._books = books
        self._chance = random.Random(seed)
        self._tenants = Tenants(self._chance, namespace)
        #: By name: those that are there, or go.
        self._there: dict[str, Tenant] = {}
        self._leaving: set[str] = set()
        #: Those that were deleted by force, and since when.
        self._forced: dict[str, float] = {}
        #: By name: all that there ever were, as they were seen last.
        self._seen: dict[str, Manifest] = {}
        #: By name: since when it could be bound, or could start.
        self._waits: dict[str, tuple[str, float]] = {}
        self._heard: set[tuple[str, str]] = set()
        self.outages = Outages()
        #: Pods that the kubelet refused, with the second and why, and those whose start was cut off
        #: by the end of any of these programs, with the second: judged when all outages are known.
        self.refused: dict[str, tuple[float, str]] = {}
        self._cut_off: dict[str, list[tuple[frozenset[str], float]]] = {}
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
                    # Who is just being created, in place of one that was refused, is left out.
                    name = self._chance.choice(sorted(self._there.keys() & self._seen.keys()))
                    await self._delete(name, by_force=self._chance.random() < _BY_FORCE)
            stop.set()
            await restarts  # what it ended runs again
            await self._wait_for_all()
            gone.set()
        self._judge_ends()

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
            await self._follow(tenant, pod)
            for container in given(pod):
                folder = self._containers / f"{pod['metadata']['uid']}-{container}"
                if tenant.due[container].memory_mib and folder.exists():
                    self.judge.page(tenant, container, pod, folder)
            await self._hear(tenant, pod)
            if pod["status"]["phase"] in ("Succeeded", "Failed"):
                await self._ended(tenant, pod)
                await self._delete(name)

    # ---- pods ------------------------------------------------------------------------------------

    async def _come(self) -> None:
        tenant = self._tenants.make()
        await self._create(tenant)
        self.done["pods"] += 1
        self.done[tenant.kind] += 1

    async def _create(self, tenant: Tenant) -> None:
        for due in tenant.due.values():
            limit = due.memory_mib << 20 or max(self.judge.gpus.values())
            await asyncio.to_thread(self._books.ask, "watch", due.tag, limit)
        self._there[tenant.name] = tenant
        self._waits[tenant.name] = "to be bound", time.time()
        self._seen[tenant.name] = await self._client.create(PODS, tenant.manifest)

    async def _delete(self, name: str, *, by_force: bool = False) -> None:
        if name in self._leaving:
            return
        self._leaving.add(name)
        # Of others it is not seen whether they have an assignment.
        by_force = by_force and bool(given(self._seen[name]))
        if by_force:
            self._forced[name] = time.time()
        with contextlib.suppress(NotFound):
            seconds = 0 if by_force else None
            await self._client.delete(PODS, name, self._namespace, grace_seconds=seconds)
        self.done["deletions"] += 1
        self.done["deletions by force"] += by_force

    async def _is_still_there(self, name: str) -> bool:
        """Whether processes of a pod may be there that was deleted by force."""
        now, since = time.time(), self._forced[name]
        waited = now - since - self.outages.overlap("kubelet", since, now)
        if waited > STUCK:
            self.judge.fault(f"outlived {name}", "its processes are there, after a minute")
            return False
        alive = await asyncio.to_thread(self._books.ask, "alive")
        return waited < _HEARD or self._seen[name]["metadata"]["uid"] in alive

    async def _gone(self, tenant: Tenant) -> None:
        name, tags = tenant.name, [due.tag for due in tenant.due.values()]
        if name in self._forced:
            if await self._is_still_there(name):
                return
            waited = time.time() - self._forced.pop(name)
            self.longest["by force to end"] = max(self.longest["by force to end"], waited)
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

    async def _ended(self, tenant: Tenant, pod: Manifest) -> None:
        name, status = tenant.name, pod["status"]
        if name in self._leaving:
            return
        if status.get("reason") == _REFUSED:
            self.refused[name] = await self._refused_at(pod), status.get("message", "")
            await self._create(self._tenants.replacement(tenant))  # as its owner does
            return
        if status["phase"] == "Failed" and (why := cut_off(pod)):
            self._cut_off[name] = [(one, at or time.time()) for one, at in why.items()]
            return
        self.done[status["phase"].lower()] += 1
        if status["phase"] == "Failed":
            said = {k: status.get(k) for k in ("reason", "message", "containerStatuses")}
            self.judge.fault(f"failed {name}", f"{said}")

    async def _refused_at(self, pod: Manifest) -> float:
        """The second in which the kubelet refused a pod: it may have begun long before."""
        told = await self._events(pod)
        times = [second(one.get("lastTimestamp")) for one in told if one["reason"] == _REFUSED]
        return max(times, default=second(pod["status"].get("startTime")))

    async def _events(self, pod: Manifest) -> list[Manifest]:
        selector = f"involvedObject.uid={pod['metadata']['uid']}"
        return (await self._client.list(EVENTS, self._namespace, field_selector=selector)).items

    def _judge_ends(self) -> None:
        """Whether the ends of pods that are nobody's fault are due to what the test ended."""
        for name, (at, text) in self.refused.items():
            if self.outages.covers(["agent"], at):
                self.done["refused while no agent ran, and replaced"] += 1
            elif self.outages.covers(["kubelet"], at):
                self.done["refused by a kubelet that started, and replaced"] += 1
            else:
                when = datetime.fromtimestamp(at).astimezone()
                self.judge.fault(f"refused {name}", f"at {when}, while the agent served: {text}")
        for name, why in self._cut_off.items():
            if not any(self.outages.covers(one, at, _TOLD) for one, at in why):
                self.judge.fault(f"cut off {name}", f"of these none had ended: {why}")
        self.done["cut off by the end of kubelet or containerd"] = len(self._cut_off)

    async def _follow(self, tenant: Tenant, pod: Manifest) -> None:
        """Take note of how long it waits, and for what."""
        name, now = tenant.name, time.time()
        if name in self._leaving or name not in self._waits:
            return
        kind, since = self._waits[name]
        is_bound = bool(pod["spec"].get("nodeName"))
        has_room = not self._is_closed and self._has_room(tenant)
        if kind == "to be bound" and not is_bound and not has_room:
            self._waits[name] = kind, now  # it waits for others
            return
        # A kubelet that starts may look 3 s for each container whose end it has missed (cAdvisor).
        waited = now - since - self.outages.overlap("kubelet", since, now)
        self.longest[kind] = max(self.longest[kind], waited)
        self.longest["with the kubelet's starts"] = max(
            self.longest["with the kubelet's starts"], now - since
        )
        if kind == "to be bound" and is_bound:
            self._waits[name] = "to start", now
        elif kind == "to start" and any("waiting" not in one for one in states(pod).values()):
            del self._waits[name]
            if waited > SLOW:
                self.slow[name] = waited, await self._events(pod)
        elif waited > STUCK:
            self.judge.fault(f"stuck {name}", f"{kind} for {waited:.0f} s: {pod['status']}")

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
                # As long as the library alone has spoken, the program waits for an agent.
                said = [line for line in found.decode().splitlines(True) if not _is_wait(line)]
                if said and said[0].endswith("\n"):
                    self._heard.add((tenant.name, container))
                    self.judge.program(tenant, container, pod, "".join(said))

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
        self.outages.began(name, time.time())
        await self._cluster.stop(name, number)
        await asyncio.sleep(self._chance.uniform(0, 2))
        started = time.time()
        await self._start(name)
        served = await self._served(started) if name == "kubelet" else 0.0
        self.outages.ended(name, max(served, time.time()))

    async def _end_agent(self, number: signal.Signals) -> None:
        """End it by a crash, or as `docs/how-to/remove-the-agent.md` says: on a closed node."""
        is_crash = number == signal.SIGKILL
        if not is_crash:
            await self._close_node(True)
            await self._all_admitted()
        else:
            self.outages.began("agent", time.time())
        await self._cluster.stop("agent", number)
        await asyncio.sleep(self._chance.uniform(0, 2))
        started = time.time()
        await self._start("agent")
        served = await self._served(started)
        took = served - started
        self.longest["to serve"] = max(self.longest["to serve"], took)
        if is_crash:
            self.outages.ended("agent", served)
        else:
            await described(self._client)
            await self._close_node(False)

    async def _served(self, since: float) -> float:
        """When the kubelet had the devices of all resources since then.

        It asks for them when they are registered, and refuses pods until it has the answer.
        """
        wanted = {names.GPU, names.VGPU}
        socket = node_shell.root(self._cluster.layout.folder) / POD_RESOURCES
        async with asyncio.timeout(STUCK), asking(socket) as ask:
            while True:
                with contextlib.suppress(LookupError, grpc.aio.AioRpcError):
                    registered(self._cluster.layout.log("agent"), wanted, since)
                    if await ask() >= wanted:
                        return time.time()
                await asyncio.sleep(0.1)

    async def _all_admitted(self) -> None:
        """Wait until the kubelet has said something of every pod that was bound."""
        async with asyncio.timeout(STUCK):
            while True:
                listed = (await self._client.list(PODS, self._namespace)).items
                bound = [pod for pod in listed if pod["spec"].get("nodeName")]
                if all("startTime" in pod["status"] for pod in bound):
                    return
                await asyncio.sleep(0.1)

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

    async def _often(
        self, mean: float, happen: Callable[[], Awaitable[None]], until: asyncio.Event
    ) -> None:
        while not until.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(until.wait(), mean * self._chance.uniform(0.7, 1.3))
                return
            await happen()


def _is_wait(line: str) -> bool:
    """Whether the library says in it that it waits for an agent."""
    return line.startswith("alnair-vgpu: waiting for")

"""Everything that goes on in a cluster at once: pods come and go, and processes and nodes fail.

All choices come from one seeded source. What the API server refuses while it is down is left out.
"""

import asyncio
import contextlib
import json
import random
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil

from alnair.kube.client import Client
from alnair.kube.errors import AlreadyExists, ApiError, ConnectionFailed, KubeError, NotFound
from alnair.kube.resources import NODES, PODGROUPS, PODS, PRIORITY_CLASSES, Manifest
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from kit.live.scheduler_process import SHORT_LEASE, SchedulerProcess, pod

#: Pods that there are at once, about a tenth more than the cluster holds.
POPULATION = 130
#: Mean seconds between arrivals, node failures, kills of the API server and of the scheduler.
ARRIVAL, FLAP, API_KILL, SCHEDULER_KILL = 0.15, 6.0, 27.0, 17.0
#: In less time than this (seconds) faults come faster, so that each kind occurs.
UNHURRIED = 80.0
HIGH = "churn-high"
#: Seconds for a checker to read all.
_READ = 60.0
_SLICES = ((2000, 15), (4000, 30), (7000, 45))
#: Pods and gangs that come, and how often each.
_KINDS = {"plain": 4, "slice": 4, "whole": 2, "gang": 1, "high": 1, "foreign": 2}


class Checker:
    """`alnair check --watch`, which judges every instant until it is asked for its result.

    It has read all when it is made: faults that come at once meet it at work.
    """

    def __init__(self, cluster: LocalCluster, folder: Path, gang_grace: float) -> None:
        self._output, said = folder / "check.json", folder / "check.txt"
        with self._output.open("wb") as output, said.open("wb") as errors:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "alnair", "check", "--watch", "--json"),
                    *("--kubeconfig", str(cluster.kubeconfig())),
                    f"--gang-grace={gang_grace}",
                ],
                stdout=output,
                stderr=errors,
            )
        until = time.monotonic() + _READ
        while "all is read" not in said.read_text():
            if self._process.poll() is not None or time.monotonic() > until:
                self.close()
                raise AssertionError(f"alnair check did not begin: {said.read_text()}")
            time.sleep(0.05)

    def result(self) -> Any:
        """End it and return what it found."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)
        return json.loads(self._output.read_text())

    def close(self) -> None:
        """End it in any case."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)


class Churn:
    """All that happens, and how often it did.

    Args:
        cluster: a full one; its own kube-scheduler is the foreign scheduler.
        client: of an administrator.
        namespace: of all pods.
        folder: for logs.
        seed: of all choices.
    """

    def __init__(
        self, cluster: LocalCluster, client: Client, namespace: str, folder: Path, seed: int
    ) -> None:
        self.done: Counter[str] = Counter()
        self.scheduler: SchedulerProcess | None = None
        #: Memory of the scheduler that lived last, in MB, once a second.
        self.memory: list[float] = []
        self._cluster, self._client, self._namespace = cluster, client, namespace
        self._folder = folder
        self._chance = random.Random(seed)
        self._number = 0
        #: What lives: names of pods; of a gang, all of them.
        self._units: list[tuple[str, list[str]]] = []

    async def run(self, seconds: float) -> None:
        """Let it all happen; the scheduler is killed only in the first half."""
        await self._client.create(
            PRIORITY_CLASSES, {"metadata": {"name": HIGH}, "value": 1000, "globalDefault": False}
        )
        self.start_scheduler()
        end = asyncio.get_running_loop().time() + seconds
        pace = min(1.0, seconds / UNHURRIED)
        async with asyncio.TaskGroup() as group:
            for mean, happen, until in (
                (ARRIVAL, self._come_and_go, end),
                (FLAP * pace, self._flap, end),
                (API_KILL * pace, self._kill_api_server, end),
                (SCHEDULER_KILL * pace, self._kill_scheduler, end - seconds / 2),
                (1.0, self._measure, end),
            ):
                group.create_task(self._often(mean, happen, until))

    async def settle(self) -> None:
        """Delete until there is room for all that is left, foreign pods and gangs included."""
        while sum(len(pods) for _, pods in self._units) > POPULATION // 3:
            await self._delete(*self._units.pop(0))

    def start_scheduler(self) -> None:
        """Start a scheduler, whose memory is measured from now on."""
        self.memory = []
        identity = f"scheduler-{self.done['schedulers']}"
        self.done["schedulers"] += 1
        self.scheduler = SchedulerProcess(self._cluster, self._folder, identity, *SHORT_LEASE)

    def growth(self) -> tuple[float, float]:
        """Return the memory in MB of the last scheduler's second quarter of life, and at its end.

        Before that it warms up: it meets its classes of pods one after the other.
        """
        quarter = len(self.memory) // 4
        return (
            statistics.median(self.memory[quarter : 2 * quarter]),
            statistics.median(self.memory[-max(1, quarter // 2) :]),
        )

    async def _often(
        self, mean: float, happen: Callable[[], Awaitable[None]], until: float
    ) -> None:
        clock = asyncio.get_running_loop().time
        while clock() < until - mean:
            await asyncio.sleep(mean * self._chance.uniform(0.5, 1.5))
            with contextlib.suppress(KubeError, OSError, TimeoutError):
                await happen()

    async def _come_and_go(self) -> None:
        while sum(len(pods) for _, pods in self._units) > POPULATION:
            index = self._chance.randrange(len(self._units))
            await self._delete(*self._units.pop(index))
        # One of each kind first: none is left to chance.
        drawn = self._chance.choices([*_KINDS], [*_KINDS.values()])[0]
        kind = [*_KINDS, drawn][min(self._number, len(_KINDS))]
        self._number += 1
        name = f"{kind}-{self._number}"
        self.done[kind] += 1
        if kind == "gang":
            await self._come_together(name)
            return
        self._units.append(("", [name]))
        await self._client.create(PODS, self._pod(kind, name))

    def _pod(self, kind: str, name: str, **metadata: Any) -> Manifest:
        limits: dict[str, str] = {}
        if kind == "slice":
            memory, compute = self._chance.choice(_SLICES)
            limits = {names.VGPU_MEMORY: str(memory), names.VGPU_COMPUTE: str(compute)}
        elif kind in ("whole", "gang"):
            limits = {names.GPU: str(self._chance.choice((1, 1, 2)))}
        manifest = pod(
            self._namespace,
            name,
            limits=limits,
            cpu=f"{self._chance.randrange(1, 12)}",
            scheduler="default-scheduler" if kind == "foreign" else names.SCHEDULER,
            **metadata,
        )
        if kind == "high":
            manifest["spec"]["priorityClassName"] = HIGH
        return manifest

    async def _come_together(self, name: str) -> None:
        count = self._chance.randrange(2, 6)
        members = [f"{name}-{i}" for i in range(count)]
        self._units.append((name, members))
        group = {
            "apiVersion": PODGROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {"minMember": count, "scheduleTimeoutSeconds": 20},
        }
        await self._client.create(PODGROUPS, group)
        for member in members:
            labels = {names.POD_GROUP_LABEL: name}
            await self._client.create(PODS, self._pod("gang", member, labels=labels))

    async def _delete(self, group: str, pods: list[str]) -> None:
        are_gone = True
        for name in pods:
            try:
                await self._client.delete(PODS, name, self._namespace, grace_seconds=0)
            except NotFound:
                continue
            except KubeError:
                are_gone = False
        if group and are_gone:  # without its group, a pod that is left would wait for ever
            with contextlib.suppress(KubeError):
                await self._client.delete(PODGROUPS, group, self._namespace)
        self.done["deletions"] += 1

    async def _flap(self) -> None:
        """Cordon a node for a while, or take it away and bring it back.

        It is put right also where the API server was killed before it answered, as it may have
        done what was asked.
        """
        node = self._chance.choice((await self._client.list(NODES)).items)
        name = node["metadata"]["name"]
        if self.done["lost nodes"] and self._chance.random() < 0.5:
            self.done["cordons"] += 1
            try:
                await self._client.merge_patch(NODES, name, {"spec": {"unschedulable": True}})
                await asyncio.sleep(self._chance.uniform(1, 4))
            finally:
                free = {"spec": {"unschedulable": None}}
                await self._insist(lambda: self._client.merge_patch(NODES, name, free))
            return
        self.done["lost nodes"] += 1
        try:
            await self._client.delete(NODES, name)
            await asyncio.sleep(self._chance.uniform(0.5, 3))
        finally:
            metadata = {k: node["metadata"].get(k, {}) for k in ("name", "labels", "annotations")}
            again = {"metadata": metadata, "spec": {}, "status": node["status"]}
            await self._insist(lambda: self._client.create(NODES, again))

    async def _insist(self, call: Callable[[], Awaitable[object]]) -> None:
        """Do it, however long the API server is away; it may have been done without an answer."""
        for _ in range(100):
            try:
                await call()
            except AlreadyExists:
                return
            except (ApiError, ConnectionFailed):
                await asyncio.sleep(0.3)
            else:
                return
        raise RuntimeError("the API server did not come back")

    async def _kill_api_server(self) -> None:
        self.done["API server kills"] += 1
        await self._cluster.restart("kube-apiserver", signal.SIGKILL)

    async def _kill_scheduler(self) -> None:
        assert self.scheduler is not None
        self.done["scheduler kills"] += 1
        killed, self.scheduler = self.scheduler, None
        await asyncio.to_thread(killed.signal, signal.SIGKILL)
        self.start_scheduler()

    async def _measure(self) -> None:
        if self.scheduler is None:  # it is being killed
            return
        assert self.scheduler.process.poll() is None, "the scheduler ended by itself"
        self.memory.append(psutil.Process(self.scheduler.process.pid).memory_info().rss / 2**20)

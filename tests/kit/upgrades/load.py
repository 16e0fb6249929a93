"""What runs, and what comes and goes, while Alnair is upgraded: slices, gangs and single pods."""

import asyncio
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import NAMESPACES, PODGROUPS, Manifest
from alnair.model import names
from kit.live.real_pods import busy, python, sliced
from kit.live.real_pods import pod as real_pod
from kit.live.scheduler_process import pod as any_pod
from kit.real_node.trying_tenants import tenant
from kit.upgrades.pod_watch import PodWatch

NAMESPACE = "load"
#: Slices that try all the time to pass their limit: name → MiB and percent.
TENANTS = {"a": (2000, 30), "b": (3000, 0)}
#: One that takes all the time of a GPU that it gets: MiB and percent.
BUSY, BUSY_SLICE = "busy", (1024, 30)
#: Seconds between pods, gangs, and pods with slices; and seconds that each runs.
PODS_EVERY, GANGS_EVERY, SLICES_EVERY, RUNS = 0.5, 4.0, 2.0, 1.5
#: Most of a kind that there are at once, gangs as one: a machine that is slow has fewer to do.
ALIVE = {"pod": 8, "gang": 3, "slice": 4}
#: Most seconds for a pod to start, which is then one that was never scheduled.
PATIENCE = 60.0

_SIMULATED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": names.REAL_NODE, "operator": "DoesNotExist"}]}
            ]
        }
    }
}


class Load:
    """Makes pods and deletes them.

    Args:
        client: Of an administrator.
        watch: Follows them.

    Attributes:
        done: How many of each kind have come and gone.
    """

    def __init__(self, client: Client, watch: PodWatch) -> None:
        self.done: Counter[str] = Counter()
        self._client = client
        self._watch = watch
        self._numbers = itertools.count()

    async def begin(self) -> None:
        """Have there what runs through it all, and wait until it runs."""
        await self._client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        for name, (mib, percent) in TENANTS.items():
            await self._watch.create(tenant(name, sliced(mib, percent)), is_real=True)
        await self._watch.create(real_pod(BUSY, busy(limits=sliced(*BUSY_SLICE))), is_real=True)
        keys = [("default", name) for name in (*TENANTS, BUSY)]
        keys += await self._gang("steady", 4, self._simulated)
        keys += await self._gang("steady-slices", 2, self._slice)
        await self._watch.started(keys, PATIENCE)

    async def run(self, until: asyncio.Event) -> None:
        """Let pods come and go, and wait until the last has gone."""
        async with asyncio.TaskGroup() as group:

            async def often(
                kind: str, seconds: float, come: Callable[[], Coroutine[None, None, None]]
            ) -> None:
                alive: set[asyncio.Task[None]] = set()
                while not until.is_set():
                    if len(alive) < ALIVE[kind]:
                        alive.add(one := group.create_task(come()))
                        one.add_done_callback(alive.discard)
                    await asyncio.sleep(seconds)

            pod = functools.partial(self._single, "pod", self._simulated)
            piece = functools.partial(self._single, "slice", self._slice)
            group.create_task(often("pod", PODS_EVERY, pod))
            group.create_task(often("slice", SLICES_EVERY, piece))
            group.create_task(often("gang", GANGS_EVERY, self._gang_comes))

    async def end(self) -> None:
        """Delete what has run through it all."""
        for key, course in self._watch.courses.items():
            if not course.deleted:
                await self._watch.delete(*key)
        await self._client.delete(NAMESPACES, NAMESPACE)

    async def _single(self, kind: str, make: Callable[..., Manifest]) -> None:
        name = f"{kind}-{next(self._numbers)}"
        await self._watch.create(make(name), is_real=make == self._slice)
        await self._lives([(NAMESPACE, name)])
        self.done[kind] += 1

    async def _gang_comes(self) -> None:
        name = f"gang-{next(self._numbers)}"
        await self._lives(await self._gang(name, 3, self._simulated))
        await self._client.delete(PODGROUPS, name, NAMESPACE)
        self.done["gang"] += 1

    async def _lives(self, keys: list[tuple[str, str]]) -> None:
        await self._watch.started(keys, PATIENCE)
        await asyncio.sleep(RUNS)
        for key in keys:
            await self._watch.delete(*key)

    async def _gang(
        self, name: str, count: int, make: Callable[..., Manifest]
    ) -> list[tuple[str, str]]:
        group = {
            "apiVersion": PODGROUPS.api_version,
            "kind": PODGROUPS.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"minMember": count, "scheduleTimeoutSeconds": 60},
        }
        await self._client.create(PODGROUPS, group)
        members = [f"{name}-{index}" for index in range(count)]
        for member in members:
            pod = make(member, labels={names.POD_GROUP_LABEL: name})
            await self._watch.create(pod, is_real=make == self._slice)
        return [(NAMESPACE, member) for member in members]

    def _simulated(self, name: str, **metadata: Any) -> Manifest:
        found = any_pod(NAMESPACE, name, limits={names.GPU: "1"}, **metadata)
        found["spec"]["affinity"] = _SIMULATED
        return found

    def _slice(self, name: str, **metadata: Any) -> Manifest:
        program = "import time; time.sleep(3600)"
        found = real_pod(name, python(program, limits=sliced(500, 5)))
        found["metadata"] |= {"namespace": NAMESPACE, **metadata}
        found["spec"]["terminationGracePeriodSeconds"] = 1
        return found

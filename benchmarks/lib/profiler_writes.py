"""How often a cluster's agents write annotations, by their own code against a server that counts.

Kinds of pods, as an assumption: trainings, whose use is steady with a pause for each evaluation;
inference, whose use swings with the requests; notebooks, idle with bursts; steady ones; steps, that
jump all together every ten minutes; noise, every half minute another value; and flips, that are
idle every other two minutes. Every 30 s an agent looks whether there is news, each at its own time,
and every 30 s it finds what each pod does: a phase, and progress where there is some.
"""

import asyncio
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import msgspec

from alnair.kube.client import Client
from alnair.kube.objects.annotations import rfc3339
from alnair.model import names, usage
from alnair.model.api_types import Workload
from alnair.node.load import GpuLoad, GpusLoad
from alnair.node.nvml import NvmlGpu
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.load_annotations import EVERY, LoadAnnotations
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.processes.agent.profiler.workload_annotations import WorkloadAnnotations
from alnair.profiler.pods.write_budget import turn
from alnair.sharing.load import IDLE_AFTER, PodLoad

#: Parts of pods by kind.
MIXES: Final = {
    "steady": {"steady": 1.0},
    "mixed": {"training": 0.5, "inference": 0.3, "notebook": 0.2},
    "trainings": {"training": 1.0},
    "inference": {"inference": 1.0},
    "steps": {"steps": 1.0},
    "flips": {"flips": 1.0},
    "noise": {"noise": 1.0},
}
_GPUS: Final = 8
#: Seconds that are not counted: all agents have begun a moment ago.
_WARM_UP: Final = 1200
_STEP: Final = 600
_BEGIN: Final = 1_800_000_000.0


class Written(msgspec.Struct):
    """What a cluster wrote.

    Attributes:
        a_second: Writes, mean.
        a_minute_most: Writes a second in the busiest minute.
        most: In the busiest second.
        gap: Points between what pods' annotations say and what is, mean.
        nodes: That were simulated.
        late: Seconds from the begin or end of a pod, or of its idleness, until it is written: the
            95th of 100; None: there was none.
    """

    a_second: float
    a_minute_most: float
    most: int
    gap: float
    late: float | None
    nodes: int = 0

    @property
    def a_second_on_a_thousand(self) -> float:
        """Writes a second of 1,000 such nodes, mean."""
        return self.a_second * 1000 / self.nodes if self.nodes else 0.0


class _Pod(msgspec.Struct):
    name: OwningPod
    kind: str
    level: float
    period: float
    begin: float
    end: float
    memory: float
    most: float = 0.0
    quiet: float | None = None
    load: PodLoad = PodLoad(0.0)
    #: When something of importance began that is not written yet.
    news: float | None = None
    is_idle: bool = False


class _Server:
    """Takes writes and counts them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.seconds = Counter[int]()
        self.pods: dict[str, tuple[float, bool]] = {}

    async def get(self, *_: object) -> Any:
        return msgspec.convert({"metadata": {"uid": "n"}}, _Object)

    async def apply(self, _: object, body: dict[str, Any], *, field_manager: str) -> None:
        self.seconds[int(self.now)] += 1
        if body["kind"] == "Pod" and field_manager == names.AGENT_PROFILER:
            text = body["metadata"]["annotations"].get(names.UTILIZATION)
            found = msgspec.json.decode(text) if text else {"gpu": 0.0}
            self.pods[body["metadata"]["uid"]] = found["gpu"], "idle_since" in found


class _Meta(msgspec.Struct):
    uid: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta


class _Node:
    """An agent's node: as `GpusLoad` and as `PodProfiler` the agent's code asks it."""

    def __init__(self, chance: random.Random, name: str, mix: str, pods: int) -> None:
        self._chance = chance
        self._name = name
        self._mix = mix
        self._count = 0
        self.now = 0.0
        self.samples: dict[str, object] = {}
        self.finals: dict[str, dict[str, float]] = {}
        self.workloads: dict[str, Workload] = {}
        self.there = [self._make(-chance.uniform(0, 3600)) for _ in range(pods)]
        self.ended: list[_Pod] = []

    def step(self, now: float) -> None:
        self.now = now
        self.ended.clear()
        for slot, pod in enumerate(self.there):
            if now >= pod.end:
                pod.news = pod.end
                self.finals[pod.name.uid] = {usage.GPU_UTIL: pod.most}
                self.ended.append(pod)
                pod = self.there[slot] = self._make(now)
                pod.news = pod.begin
            before = pod.load.idle_for is not None
            pod.load = _load(self._chance, pod, now)
            if (pod.load.idle_for is not None) != before:
                pod.news = now

    def gpus(self) -> dict[str, GpuLoad]:
        uses = [pod.load.gpu for pod in self.there]
        return {
            str(index): GpuLoad(min(100.0, sum(uses[index::_GPUS])), 1000 << 20, EVERY)
            for index in range(_GPUS)
        }

    def pods(self) -> dict[OwningPod, PodLoad | None]:
        return {pod.name: pod.load for pod in self.there}

    def values(self, uid: str) -> dict[str, tuple[float | None, float]]:
        if uid in self.finals:
            return {usage.GPU_UTIL: (None, self.finals[uid][usage.GPU_UTIL])}
        pod = next(one for one in self.there if one.name.uid == uid)
        return {
            usage.GPU_UTIL: (pod.load.gpu, pod.most),
            usage.GPU_MEMORY_MIB: (pod.memory, pod.memory),
        }

    def found(self) -> Iterator[tuple[_Pod, Workload]]:
        """What its pods do."""
        for pod in self.there:
            age = self.now - pod.begin
            at = rfc3339(_BEGIN + self.now)
            if pod.kind == "training":
                phase = "evaluation" if _evaluates(pod, age) else "training"
                done = age / (pod.end - pod.begin)
                left = (pod.end - self.now) * self._chance.uniform(0.97, 1.03)
                made = Workload(1, at, "training", phase=phase, progress=done, eta_s=left)
            elif pod.kind in ("noise", "flips"):
                kind = "idle" if pod.load.gpu < 1 else self._chance.choice(["batch", "inference"])
                made = Workload(1, at, kind)
            else:
                made = Workload(1, at, "inference")
            yield pod, made

    def _make(self, now: float) -> _Pod:
        chance, kinds = self._chance, MIXES[self._mix]
        kind = chance.choices(list(kinds), list(kinds.values()))[0]
        life = 1e9
        if kind in ("training", "notebook"):
            life = max(60.0, chance.lognormvariate(8.5, 1.2))
        self._count += 1
        return _Pod(
            OwningPod("team", f"pod-{self._count}", f"{self._name}-{self._count}"),
            kind,
            level=chance.uniform(20, 95),
            period=chance.uniform(300, 3600),
            begin=now,
            end=now + life,
            memory=chance.uniform(1000, 40000),
        )


def writes(
    mix: str,
    nodes: int = 1000,
    pods: int = 20,
    seconds: int = 3600,
    go_on: Callable[[int], bool] = lambda _: True,
) -> Written:
    """Return what a cluster's agents write.

    Args:
        mix: One of `MIXES`.
        nodes: Of the cluster.
        pods: On each, at any time.
        seconds: That are counted.
        go_on: Called with the number of nodes that are done; False ends it with these, which are
            not chosen: each node is made of its number alone.
    """
    total = Counter[int]()
    gaps: list[float] = []
    late: list[float] = []
    done = 0
    for number in range(nodes):
        found, node_gaps, node_late = asyncio.run(_node(mix, f"node-{number}", pods, seconds))
        total += found
        gaps += node_gaps
        late += node_late
        done += 1
        if not go_on(done):
            break
    counted = {at: count for at, count in total.items() if at >= _WARM_UP}
    minutes = Counter[int]()
    for at, count in counted.items():
        minutes[at // 60] += count
    return Written(
        round(sum(counted.values()) / seconds, 2),
        round(max(minutes.values(), default=0) / 60, 1),
        max(counted.values(), default=0),
        round(statistics.fmean(gaps), 2),
        round(statistics.quantiles(late, n=20)[18], 1) if len(late) > 1 else None,
        done,
    )


async def _node(
    mix: str, name: str, pods: int, seconds: int
) -> tuple[Counter[int], list[float], list[float]]:
    node, server = _Node(random.Random(name), name, mix, pods), _Server()
    client, profiler = cast("Client", server), cast("PodProfiler", node)
    gpus = tuple(NvmlGpu(index, str(index), "T", 1 << 34) for index in range(_GPUS))

    def clock() -> float:
        return _BEGIN + server.now

    loads = LoadAnnotations(client, name, lambda: gpus, cast("GpusLoad", node), profiler, now=clock)
    workloads = WorkloadAnnotations(client, clock, name)
    gaps: list[float] = []
    late: list[float] = []
    server.now = turn(name, EVERY)
    while server.now < _WARM_UP + seconds:
        node.step(server.now)
        await loads.write()
        for pod, found in node.found():
            await workloads.tell(pod.name, found)
        for pod in [*node.ended, *node.there]:
            said, is_idle = server.pods.get(pod.name.uid, (None, False))
            is_told = said is not None and is_idle == (pod.load.idle_for is not None)
            if pod in node.ended:
                is_told = said == 0.0
                workloads.forget(pod.name.uid)
            elif server.now >= _WARM_UP:
                gaps.append(abs((said or 0.0) - pod.load.gpu))
            if pod.news is not None and is_told:
                if pod.news >= _WARM_UP:
                    late.append(server.now - pod.news)
                pod.news = None
        server.now += EVERY
    return server.seconds, gaps, late


def _evaluates(pod: _Pod, age: float) -> bool:
    return age % pod.period > 0.95 * pod.period


def _load(chance: random.Random, pod: _Pod, now: float) -> PodLoad:
    """What a mean over half a minute says."""
    age = now - pod.begin
    match pod.kind:
        case "steady":
            value = pod.level + chance.gauss(0, 1)
        case "training":
            value = (0.3 if _evaluates(pod, age) else 1.0) * pod.level + chance.gauss(0, 1)
        case "inference":
            swing = 1 + 0.5 * ((now / 3600 + pod.period) % 2 - 1)
            value = pod.level * 0.5 * swing + chance.gauss(0, 6)
        case "notebook":
            value = pod.level if age % pod.period < 0.1 * pod.period else 0.0
        case "steps":
            value = (pod.level + 40 * (now // _STEP)) % 100 + chance.gauss(0, 1)
        case "flips":
            value = pod.level if now % 240 < 120 else 0.0
        case _:
            value = chance.uniform(0, 100)
    value = min(100.0, max(0.0, value))
    pod.most = max(pod.most, min(100.0, value + abs(chance.gauss(0, 3)) if value else 0.0))
    if value >= 1:
        pod.quiet = None
    elif pod.quiet is None:
        pod.quiet = now
    idle = None if pod.quiet is None else now - pod.quiet
    return PodLoad(value, idle if idle is not None and idle >= IDLE_AFTER else None)

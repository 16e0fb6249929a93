"""How often a cluster's agents write annotations of what pods and GPUs do, by their own rules.

Kinds of pods and their parts of a node, as an assumption: trainings, whose use is steady with a
pause for each evaluation; inference, whose use swings with the requests; notebooks, idle with
bursts. Every 30 s an agent looks whether there is news, as the real one does.
"""

import random
from typing import Final

import msgspec

from alnair.kube.objects.annotations import rfc3339
from alnair.model import usage
from alnair.model.api_types import GpuLoadAnnotation, PodUtilization
from alnair.processes.agent.load_annotations import EVERY, REFRESH, are_news, is_steady, utilization
from alnair.sharing.load import IDLE_AFTER, PodLoad

#: Parts of pods by kind; "noise" is the worst: every half minute another value.
MIXES: Final = {
    "mixed": {"training": 0.5, "inference": 0.3, "notebook": 0.2},
    "trainings": {"training": 1.0},
    "inference": {"inference": 1.0},
    "noise": {"noise": 1.0},
}
_GPUS: Final = 8


class _Pod(msgspec.Struct):
    kind: str
    level: float
    period: float
    begin: float
    end: float
    memory: float
    written: PodUtilization | None = None
    most: float = 0.0
    quiet: float | None = None


def writes_a_second(
    mix: str, nodes: int = 30, pods: int = 20, seconds: int = 7200, seed: int = 1
) -> tuple[float, float]:
    """Return writes a second and node: of pods, and of nodes.

    Args:
        mix: One of `MIXES`.
        nodes: That are simulated.
        pods: On each, at any time.
        seconds: Of the clusters' life; the first half hour is not counted.
        seed: Of chance.
    """
    chance = random.Random(seed)
    of_pods = of_nodes = 0
    for _ in range(nodes):
        there = [_make(chance, mix, -chance.uniform(0, 3600)) for _ in range(pods)]
        before: dict[str, GpuLoadAnnotation] = {}
        at = -REFRESH
        now = chance.uniform(0, EVERY)
        while now < seconds:
            counts = now >= 1800
            uses: list[float] = []
            for slot, pod in enumerate(there):
                if now >= pod.end:
                    of_pods += counts  # what it used at most
                    pod = there[slot] = _make(chance, mix, now)
                load = _load(chance, pod, now)
                uses.append(load.gpu)
                values = {
                    usage.GPU_UTIL: (load.gpu, pod.most),
                    usage.GPU_MEMORY_MIB: (pod.memory, pod.memory),
                }
                made = utilization(pod.written, load, now, values)
                if made is not pod.written:
                    of_pods += counts
                    pod.written = made
            wanted = _gpus(uses, now)
            for key, new in wanted.items():
                if key in before and is_steady(before[key], new):
                    wanted[key] = before[key]
            changed = wanted != before and are_news(before, wanted, now - at)
            if changed or now - at >= REFRESH:
                of_nodes += counts
                before, at = wanted, now
            now += EVERY
    total = nodes * (seconds - 1800)
    return of_pods / total, of_nodes / total


def _make(chance: random.Random, mix: str, now: float) -> _Pod:
    kinds = MIXES[mix]
    kind = chance.choices(list(kinds), list(kinds.values()))[0]
    life = chance.lognormvariate(8.5, 1.2) if kind != "inference" else 1e9
    return _Pod(
        kind,
        level=chance.uniform(20, 95),
        period=chance.uniform(300, 3600),
        begin=now,
        end=now + max(60.0, life),
        memory=chance.uniform(1000, 40000),
    )


def _load(chance: random.Random, pod: _Pod, now: float) -> PodLoad:
    """What a mean over half a minute says."""
    age = now - pod.begin
    match pod.kind:
        case "training":
            evaluates = age % pod.period > 0.95 * pod.period
            value = (0.3 if evaluates else 1.0) * pod.level + chance.gauss(0, 1)
        case "inference":
            swing = 1 + 0.5 * ((now / 3600 + pod.period) % 2 - 1)
            value = pod.level * 0.5 * swing + chance.gauss(0, 6)
        case "notebook":
            value = pod.level if age % pod.period < 0.1 * pod.period else 0.0
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


def _gpus(uses: list[float], now: float) -> dict[str, GpuLoadAnnotation]:
    found = {}
    for index in range(_GPUS):
        util = min(100.0, sum(uses[index::_GPUS]))
        found[f"gpu-{index}"] = GpuLoadAnnotation(1, rfc3339(now), str(index), round(util, 1), 1000)
    return found

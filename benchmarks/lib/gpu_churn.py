"""Random arrivals and departures of pods that name only GPUs, and what they leave free."""

import random
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from alnair.model import names

#: GPUs of each node: the size of the pods that need a node for themselves.
NODE: Final = 8
#: GPUs of a pod, and how many in a hundred pods ask for so many.
SIZES: Final = {1: 55, 2: 20, 4: 15, 8: 10}
#: Mean lifetime in steps.
LIFETIME: Final = 8.0


@dataclass(frozen=True)
class Step:
    """What happens at once: pods come, what is free is counted, pods go.

    Attributes:
        arrivals: GPUs by name of the pod.
        departures: names of pods; those that found no node are gone before.
    """

    arrivals: Mapping[str, int]
    departures: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A sequence and where it happens."""

    nodes: int
    load: float
    seed: int
    steps: tuple[Step, ...]


def case(nodes: int, load: float, seed: int, steps: int) -> Case:
    """Return the case of a seed: as many pods as the load says at once, then Poisson arrivals.

    No pod comes when all that came and did not go ask for all GPUs but fewer than it wants: what
    finds no node then finds none because the GPUs that are left are apart.

    Args:
        nodes: of 8 GPUs each.
        load: part of the GPUs that is asked for, in the mean.
        seed: of the random numbers.
        steps: how many; lifetimes are exponential with a mean of `LIFETIME` steps.
    """
    draw = random.Random(f"{nodes}/{load}/{seed}")
    sizes, weights = list(SIZES), list(SIZES.values())
    total = nodes * NODE
    rate = load * total * sum(weights) / sum(s * w for s, w in SIZES.items()) / LIFETIME
    arrivals: list[dict[str, int]] = [{} for _ in range(steps)]
    departures: list[list[str]] = [[] for _ in range(steps)]
    asked, leaving, came = 0, Counter[int](), 0
    now, gone = -LIFETIME, 0
    while True:
        # What would have come in a mean lifetime before the first step comes at its beginning.
        now += draw.expovariate(rate)
        step = max(0, int(now))
        if step >= steps:
            break
        while gone < step:
            asked -= leaving[gone]
            gone += 1
        size = draw.choices(sizes, weights)[0]
        end = int(max(now, 0.0) + draw.expovariate(1.0 / LIFETIME))
        if asked + size > total:
            continue
        name = f"pod-{came:06d}"
        came += 1
        asked += size
        leaving[end] += size
        arrivals[step][name] = size
        if end < steps:
            departures[end].append(name)
    both = zip(arrivals, departures, strict=True)
    return Case(nodes, load, seed, tuple(Step(came, tuple(left)) for came, left in both))


def manifest(name: str, gpus: int, scheduler: str, namespace: str) -> dict[str, Any]:
    """A pod that names only GPUs, and ends as soon as it is deleted."""
    container = {
        "name": "main",
        "image": "pause",
        "resources": {"limits": {names.GPU: str(gpus)}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }


class Tally:
    """Where pods are, and what that leaves free at each step."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._where: dict[str, tuple[str, int]] = {}
        self._free_nodes: list[int] = []
        self._undivided: list[int] = []
        self._free_gpus: list[int] = []
        self._refused: Counter[int] = Counter()

    def step(self, arrivals: Mapping[str, int], bound: Mapping[str, str]) -> list[str]:
        """Note where pods went, and count; return those that found no node.

        Raises:
            RuntimeError: a node has more than its GPUs, so that nothing that was counted is true.
        """
        for name, size in arrivals.items():
            if name in bound:
                self._where[name] = (bound[name], size)
            else:
                self._refused[size] += 1
        used: Counter[str] = Counter()
        divided = set()
        for node, size in self._where.values():
            used[node] += size
            if size < NODE:
                divided.add(node)
        if over := [node for node, gpus in used.items() if gpus > NODE]:
            raise RuntimeError(f"more than {NODE} GPUs are in use on {', '.join(over)}")
        self._free_nodes.append(self._nodes - len(used))
        self._undivided.append(self._nodes - len(divided))
        self._free_gpus.append(self._nodes * NODE - used.total())
        return [name for name in arrivals if name not in bound]

    def gone(self, name: str) -> None:
        """A pod left."""
        self._where.pop(name, None)

    def result(self) -> dict[str, float]:
        """Return means over the steps, and what found no node, in all."""
        return {
            "free_nodes": statistics.fmean(self._free_nodes),
            "undivided_nodes": statistics.fmean(self._undivided),
            "free_gpus": statistics.fmean(self._free_gpus),
            "refused_pods": self._refused.total(),
            "refused_gpus": sum(size * count for size, count in self._refused.items()),
        }

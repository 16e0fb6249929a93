"""What pods ask for, learned as they arrive: the workload that free GPUs should be of use to.

Old pods are forgotten bit by bit: whenever the mix holds twice `MEMORY` pods, all counts are
halved. What plugins read is a copy that changes at a growing distance, since every change voids
what they computed from it.
"""

import math
from typing import Final

import msgspec

from alnair.model import names
from alnair.model.workload import Pod, PodSpec

#: Pods that the mix remembers at least, once there were so many.
MEMORY: Final = 8192
#: The copy is made at this pod, as fewer say little of those to come, then whenever there are half
#: as many more, or so many more.
FIRST: Final = 16
GROWTH: Final = 1.5
MOST_APART: Final = 4096
#: Steps of the turnover. A power of two, so that what is made of it is exact.
_TURNS: Final = 32
#: Counts that were halved below this are dropped.
_LEAST: Final = 0.6


class Ask(msgspec.Struct, frozen=True, gc=False):
    """What pods alike ask for; `models` are the GPU models that will do, all if empty."""

    cpu_milli: int = 0
    ram_mib: int = 0
    whole: int = 0
    memory_mib: int = 0
    compute: int = 0
    models: tuple[str, ...] = ()
    models_not: tuple[str, ...] = ()

    def accepts(self, model: str) -> bool:
        """Return whether a GPU of this model will do."""
        return model not in self.models_not and (not self.models or model in self.models)


class MixState(msgspec.Struct, frozen=True):
    """All that the mix has learned, for snapshots.

    Attributes:
        counts: how many pods asked for what, lately.
        demand: the same when the copy that plugins read was made.
        seen: pods in all.
        due: how many there will be when the copy is made anew.
        copied: pods in all when the copy was made.
        left: pods that had a node and left it since.
        turnover: as plugins read it.
    """

    counts: tuple[tuple[Ask, float], ...] = ()
    demand: tuple[tuple[Ask, float], ...] = ()
    seen: int = 0
    due: int = FIRST
    copied: int = 0
    left: int = 0
    turnover: float = 0.0


class WorkloadMix:
    """What pods lately asked for.

    Attributes:
        demand: (what, how many): the copy that plugins read; empty before the first was made.
        version: changes with `demand`.
        counts: how many lately asked for what, as of now.
        seen: pods in all.
        turnover: for each pod that came between the last two copies, how many left a node, at most
            1: 0 where pods stay for ever, 1 where as many leave as come. In steps.
    """

    def __init__(self) -> None:
        self.demand: tuple[tuple[Ask, float], ...] = ()
        self.version = 0
        self.counts: dict[Ask, float] = {}
        self._total = 0.0
        self.seen = 0
        self.turnover = 0.0
        self._left = self._copied = 0
        self._due = FIRST
        self._new: list[Pod] = []

    def gather(self, pod: Pod) -> None:
        """Take note of a pod that is new."""
        self._new.append(pod)

    def leaves(self, pod: Pod) -> None:
        """Take note of a pod that is gone."""
        self._left += bool(pod.node)

    def learn(self) -> bool:
        """Take in the pods gathered, in the order of their creation; returns whether that shows."""
        if not self._new:
            return False
        if len(self._new) > 1:  # at the start they come in any order
            self._new.sort(key=lambda pod: (pod.created, pod.namespace, pod.name))
        for pod in self._new:
            self._count(pod.spec)
        self._new.clear()
        if self.seen < self._due:
            return False
        self._due = min(math.ceil(self.seen * GROWTH), self.seen + MOST_APART)
        self.demand = tuple(self.counts.items())
        turns = min(self._left / (self.seen - self._copied), 1.0)
        self.turnover = math.floor(turns * _TURNS + 0.5) / _TURNS
        self._left, self._copied = 0, self.seen
        self.version += 1
        return True

    def state(self) -> MixState:
        """Return all that was learned."""
        counts, left = tuple(self.counts.items()), self._left
        return MixState(
            counts, self.demand, self.seen, self._due, self._copied, left, self.turnover
        )

    def restore(self, state: MixState) -> None:
        """Know what another mix had learned, and nothing else."""
        self._new.clear()
        self.counts = dict(state.counts)
        self._total = sum(self.counts.values())
        self.seen, self._due = state.seen, state.due
        self._copied, self._left, self.turnover = state.copied, state.left, state.turnover
        self.demand = state.demand
        self.version += 1

    def _count(self, spec: PodSpec) -> None:
        if spec.gpu is not None and spec.gpu.problem:
            return
        ask = asked(spec)
        self.counts[ask] = self.counts.get(ask, 0.0) + 1.0
        self.seen += 1
        self._total += 1.0
        if self._total >= 2 * MEMORY:
            halves = {ask: count / 2 for ask, count in self.counts.items()}
            self.counts = {ask: count for ask, count in halves.items() if count >= _LEAST}
            self._total = sum(self.counts.values())


def asked(spec: PodSpec) -> Ask:
    """Return what a pod asks for."""
    requests = dict(spec.requests)
    cpu, ram = requests.get("cpu", 0), requests.get("memory", 0) >> 20
    demand = spec.gpu
    if demand is None or not (demand.whole or demand.memory_mib):
        return Ask(cpu, ram)
    models = demand.models
    if (named := _named(spec)) is not None:
        models = tuple(sorted(set(models) & named if models else named))
    return Ask(cpu, ram, demand.whole, demand.memory_mib, demand.compute, models, demand.models_not)


def _named(spec: PodSpec) -> set[str] | None:
    """Return the GPU models that node selector and affinity name; None if they name none."""
    found: set[str] | None = None
    for key, value in spec.node_selector:
        if key == names.GPU_MODEL_LABEL:
            found = {value}
    required = spec.affinity.required if spec.affinity else None
    if not required:
        return found
    named: set[str] = set()
    for term in required:
        values = [
            r.values for r in term.labels if r.key == names.GPU_MODEL_LABEL and r.operator == "In"
        ]
        if not values:
            return found
        named |= set.intersection(*map(set, values))
    return named if found is None else found & named

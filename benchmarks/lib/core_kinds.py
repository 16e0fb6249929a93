"""The harder kinds of work for `decision_core.py`: each is one function that measures once.

All of them make a new engine, tell it everything before the clock starts, and time `engine.step`.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

from alnair.model import names
from alnair.model.action import Bind, Evict, WritePlan
from alnair.model.gpu_demand import ContainerGpus, gpu_demand
from alnair.model.nodes import Gpu, Node
from alnair.model.workload import (
    Gang,
    GangTopology,
    LabelSelector,
    Pod,
    PodAffinity,
    PodSpec,
    PodTerm,
    Requirement,
    SpreadConstraint,
)
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import STEP_LIMIT, Engine
from alnair.scheduler.profiles import profiles
from alnair.scheduler.queue.unit import Place

GIB: Final = 2**30
RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
RACKS: Final = 50
#: Of the gang, and of each of many gangs.
GANG, SMALL_GANG, SMALL_GANGS = 1000, 50, 100
BACKLOG: Final = 10_000
FRACTIONS, FRACTION_NODES = 40, 100
API: Final = "scheduling.x-k8s.io/v1alpha1"
_APP: Final = LabelSelector((Requirement("app", "In", ("bench",)),))

Measured = dict[str, float]


class Clock:
    """Wall and CPU time of a block; what was there before does not cost the collector, as in life.

    Otherwise what is parked would make the collector look at everything less often.
    """

    def __enter__(self) -> Self:
        gc.collect()
        gc.freeze()
        self.wall, self.cpu = -time.perf_counter(), -time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()
        gc.unfreeze()

    def each(self, count: int) -> Measured:
        """What one of so many decisions took."""
        return {
            "decisions_per_s": count / self.wall,
            "us_per_decision": 1e6 * self.wall / count,
            "cpu_us_per_decision": 1e6 * self.cpu / count,
        }


def spread(nodes: int, pods: int, seed: int) -> Measured:
    """Pods that must be spread evenly over three zones."""
    constraint = SpreadConstraint(1, ZONE, hard=True, selector=_APP)
    return _lone(nodes, pods, seed, _spec(spread=(constraint,)))


def antiaffinity(nodes: int, pods: int, seed: int) -> Measured:
    """Pods of which no two may be on one node; there are at most as many as nodes."""
    affinity = PodAffinity(anti_required=(PodTerm(HOST, _APP, ()),))
    return _lone(nodes, min(nodes, pods), seed, _spec(pod_affinity=affinity))


def preferred(nodes: int, pods: int, seed: int) -> Measured:
    """Pods that like to be in the rack of others like them."""
    affinity = PodAffinity(preferred=(PodTerm(RACK, _APP, (), weight=50),))
    return _lone(nodes, pods, seed, _spec(pod_affinity=affinity))


def backlog(nodes: int, pods: int, seed: int) -> Measured:
    """The identical burst without and with 10,000 parked pods that want more CPU than there is.

    After each step one pod ends that was there, so that parked pods have to be looked at again. The
    parked ones are of one class, or each of its own.
    """
    found: Measured = {}
    took: dict[str, list[float]] = {}
    # Each way several times in turn: a few percent are less than what other processes do to one.
    for _ in range(5):
        for name, classes in (("none", 0), ("alike", 1), ("distinct", BACKLOG)):
            clock = _burst(nodes, pods, seed, classes)
            took.setdefault(name, []).append(clock.cpu)
            found.setdefault(f"{name}_decisions_per_s", pods / clock.wall)
    best = {name: min(each) for name, each in took.items()}
    for name in ("alike", "distinct"):
        found[f"{name}_loss_pct"] = 100 * (best[name] / best["none"] - 1)
    return found


def gang1000(nodes: int, pods: int, seed: int) -> Measured:
    """One gang of 1,000 that must lie in one rack of 50, every rack evaluated."""
    del pods
    engine = _engine(nodes, seed)
    _declare(engine, "big", GANG, GangTopology(required=RACK))
    with Clock() as clock:
        actions = engine.step((), 1.0, GANG)
    (plan,) = (a.plan for a in actions if isinstance(a, WritePlan))
    columns = engine.view.cluster.columns
    racks = {_rack(columns.row_of[node]) for node, _ in plan.values()}
    assert len(plan) == GANG
    assert len(racks) == 1
    return {"gang_ms": 1e3 * clock.wall, "gang_cpu_ms": 1e3 * clock.cpu}


def gangs(nodes: int, pods: int, seed: int) -> Measured:
    """A hundred gangs of 50, each in one rack."""
    del pods
    engine = _engine(nodes, seed)
    for number in range(SMALL_GANGS):
        _declare(engine, f"gang-{number}", SMALL_GANG, GangTopology(required=RACK))
    planned = 0
    with Clock() as clock:
        while engine.view.count(Place.ACTIVE):
            actions = engine.step((), 1.0, STEP_LIMIT)
            planned += sum(len(a.plan) for a in actions if isinstance(a, WritePlan))
    assert planned == SMALL_GANGS * SMALL_GANG, planned
    return clock.each(planned) | {"gang_ms": 1e3 * clock.wall / SMALL_GANGS}


def preemption(nodes: int, pods: int, seed: int) -> Measured:
    """A full cluster, and pods of higher priority that each need another's room."""
    pods = min(pods, nodes)
    engine = _engine(nodes, seed)
    low = _spec(cpu=8000)
    bound = [
        _pod(f"low-{node}-{i}", low, node=_name(node)) for node in range(nodes) for i in range(4)
    ]
    engine.learn([events.PodChanged(pod) for pod in bound], 0.0)
    high = [_pod(f"high-{i}", low, priority=1000) for i in range(pods)]
    engine.step([events.PodChanged(pod) for pod in high], 1.0, limit=0)
    evicted = 0
    with Clock() as clock:
        while engine.view.count(Place.ACTIVE):
            actions = engine.step((), 1.0, STEP_LIMIT)
            evicted += sum(isinstance(a, Evict) for a in actions)
    assert evicted == pods, evicted
    return clock.each(pods)


def fractions(nodes: int, pods: int, seed: int) -> Measured:
    """40 slices of GPUs at once on 100 nodes of eight."""
    del nodes, pods
    engine = Engine(profiles(), seed=seed)
    engine.learn([events.NodeChanged(_gpu_node(i)) for i in range(FRACTION_NODES)], 0.0)
    asked = [_slice(5000 + 500 * (i % 10), 10 + 5 * (i % 10)) for i in range(FRACTIONS)]
    waiting = [_pod(f"slice-{i}", spec) for i, spec in enumerate(asked)]
    engine.step([events.PodChanged(pod) for pod in waiting], 1.0, limit=0)
    with Clock() as clock:
        actions = engine.step((), 1.0, FRACTIONS)
    assert sum(isinstance(a, Bind) and bool(a.assignment) for a in actions) == FRACTIONS
    return {"burst_ms": 1e3 * clock.wall, **clock.each(FRACTIONS)}


KINDS: Final[dict[str, Callable[[int, int, int], Measured]]] = {
    f.__name__: f
    for f in (
        spread,
        antiaffinity,
        preferred,
        backlog,
        gang1000,
        gangs,
        preemption,
        fractions,
    )
}
#: What was promised: for a kind, the figures that must stay below a limit.
LIMITS: Final[dict[str, dict[str, float]]] = {
    "backlog": {"alike_loss_pct": 5.0, "distinct_loss_pct": 5.0},
    "gang1000": {"gang_ms": 100.0},
    "fractions": {"burst_ms": 2000.0},
}


def report(kind: str, nodes: int, pods: int, repeat: int, seed: int) -> dict[str, Any]:
    """Measure a kind so often and return the medians, their spread, and the targets."""
    runs = []
    for number in range(repeat):
        runs.append(KINDS[kind](nodes, pods, seed))
        shown = ", ".join(f"{name} {value:,.1f}" for name, value in runs[-1].items())
        print(f"run {number + 1}: {shown}", file=sys.stderr)
    found = {name: _spread([run[name] for run in runs]) for name in runs[0]}
    limits = LIMITS.get(kind, {})
    return {
        **found,
        "targets": {
            name: {"below": limit, "met": found[name]["median"] < limit}
            for name, limit in limits.items()
        },
    }


def _spread(values: Sequence[float]) -> Measured:
    return {
        "median": round(statistics.median(values), 1),
        "min": round(min(values), 1),
        "max": round(max(values), 1),
    }


def _lone(nodes: int, pods: int, seed: int, spec: PodSpec) -> Measured:
    engine = _engine(nodes, seed)
    waiting = [_pod(f"pod-{i}", spec) for i in range(pods)]
    engine.step([events.PodChanged(pod) for pod in waiting], 1.0, limit=0)
    placed = 0
    with Clock() as clock:
        while engine.view.count(Place.ACTIVE):
            actions = engine.step((), 1.0, STEP_LIMIT)
            placed += sum(isinstance(a, Bind) for a in actions)
    assert placed == pods, f"{placed} of {pods} pods placed"
    return clock.each(pods)


def _burst(nodes: int, pods: int, seed: int, classes: int) -> Clock:
    """Place identical pods beside a backlog of so many classes, all of it parked before."""
    engine = _engine(nodes, seed)
    ending = [
        _pod(f"ends-{i}", _spec(), node=_name(i % nodes)) for i in range(pods // STEP_LIMIT + 1)
    ]
    engine.learn([events.PodChanged(pod) for pod in ending], 0.0)
    if classes:
        # No node has that much.
        huge = [_spec(cpu=10**6 + i % classes) for i in range(BACKLOG)]
        parked = [_pod(f"parked-{i}", spec) for i, spec in enumerate(huge)]
        engine.step([events.PodChanged(pod) for pod in parked], 1.0, limit=BACKLOG)
        assert engine.view.count(Place.PARKED) == BACKLOG
    waiting = [_pod(f"pod-{i}", _spec()) for i in range(pods)]
    engine.step([events.PodChanged(pod) for pod in waiting], 1.0, limit=0)
    placed = 0
    with Clock() as clock:
        while placed < pods:
            actions = engine.step([events.PodGone(ending.pop().uid)], 1.0, STEP_LIMIT)
            placed += sum(isinstance(a, Bind) for a in actions)
    return clock


def _engine(nodes: int, seed: int) -> Engine:
    engine = Engine(profiles(), seed=seed)
    engine.learn([events.NodeChanged(_node(i)) for i in range(nodes)], 0.0)
    return engine


def _declare(engine: Engine, name: str, count: int, topology: GangTopology) -> None:
    members = [_pod(f"{name}-{i}", _spec(cpu=2000), group=name) for i in range(count)]
    gang = Gang("default", name, count, 0.0, api=API, topology=topology)
    engine.step(
        [events.GangChanged(gang), *(events.PodChanged(pod) for pod in members)], 1.0, limit=0
    )


def _name(index: int) -> str:
    return f"node-{index:05}"


def _rack(index: int) -> str:
    return f"rack-{index % RACKS}"


def _node(index: int) -> Node:
    labels = {HOST: _name(index), RACK: _rack(index), ZONE: f"zone-{index % 3}"}
    return Node(_name(index), {"cpu": 32_000, "memory": 256 * GIB, "pods": 110}, labels)


def _gpu_node(index: int) -> Node:
    name = _name(index)
    gpus = tuple(Gpu(f"GPU-{name}-{i}", i, "A100", 40_960) for i in range(8))
    allocatable = {
        "cpu": 96_000,
        "memory": 512 * GIB,
        "pods": 110,
        names.GPU: 8,
        names.VGPU: 8 * names.VGPU_SLOTS,
        names.VGPU_MEMORY: 8 * 40_960,
        names.VGPU_COMPUTE: 800,
    }
    return Node(name, allocatable, {HOST: name}, gpus=gpus)


def _spec(cpu: int = 500, **more: Any) -> PodSpec:
    return PodSpec(
        requests=(("cpu", cpu), ("memory", GIB), ("pods", 1)),
        scored_cpu=cpu,
        scored_memory=GIB,
        **more,
    )


def _slice(memory_mib: int, compute: int) -> PodSpec:
    asked = {names.VGPU_MEMORY: memory_mib, names.VGPU_COMPUTE: compute}
    shares = ((names.VGPU, 1), (names.VGPU_COMPUTE, compute), (names.VGPU_MEMORY, memory_mib))
    return PodSpec(
        requests=(*shares, ("cpu", 500), ("memory", GIB), ("pods", 1)),
        scored_cpu=500,
        scored_memory=GIB,
        gpu=gpu_demand([ContainerGpus("main", asked)], {}),
    )


def _pod(name: str, spec: PodSpec, **more: Any) -> Pod:
    labels = (("app", "bench"),)
    return Pod(name, "default", name, spec, names.SCHEDULER, 0.0, labels=labels, **more)

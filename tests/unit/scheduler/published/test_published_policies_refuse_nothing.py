"""A pod is placed if, and only if, some node has room for it, whatever the policy thinks of nodes.

The nodes are larger than any that the published policies measure by, smaller, and without GPUs.
"""

import random

import numpy as np
import pytest

from alnair.model.action import Bind
from alnair.model.nodes import Node
from alnair.model.workload import PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.published import MIB_PER_MILLI
from alnair.scheduler.published.fragmentation import WorkloadClass
from alnair.scheduler.published.profiles import POLICIES, Policy, published
from alnair.traces.openb import WHOLE
from kit import make
from kit.make import GIB
from kit.stream import Stream, profile

MIXED = (
    WorkloadClass(share=0.5, cpu_milli=1000, gpus=1, gpu_milli=310, models=(), pods=1),
    WorkloadClass(share=0.5, cpu_milli=8000, gpus=1, gpu_milli=1000, models=(), pods=1),
)


class Room:
    """What a node has left, counted without the scheduler."""

    def __init__(self, node: Node) -> None:
        self.cpu, self.memory = node.allocatable["cpu"], node.allocatable["memory"]
        self.gpus = [WHOLE] * len(node.gpus)
        self.models = {gpu.model for gpu in node.gpus}

    def holds(self, cpu: int, memory: int, gpus: int, milli: int, model: str) -> bool:
        free = sum(left >= milli for left in self.gpus)
        named = not model or not gpus or model in self.models
        return self.cpu >= cpu and self.memory >= memory and free >= gpus and named

    def take(self, cpu: int, memory: int, slots: list[int], milli: int) -> None:
        self.cpu -= cpu
        self.memory -= memory
        for slot in slots:
            self.gpus[slot] -= milli
        assert min([self.cpu, self.memory, *self.gpus]) >= 0


def odd_nodes(chance: random.Random) -> list[Node]:
    return [
        make.node(
            f"n{i}",
            cpu=chance.choice((0, 1, 8000, 128_000, 512_000, 10**15)),
            memory=chance.choice((0, 1, GIB, 512 * GIB, 1 << 60)),
            gpus=chance.choice((0, 1, 2, 8, 16)),
            gpu_memory=WHOLE * MIB_PER_MILLI,
            model=chance.choice(("A100", "T4")),
        )
        for i in range(chance.choice((1, 3, 12)))
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", POLICIES)
def test_a_pod_is_placed_if_and_only_if_some_node_has_room(policy: Policy, seed: int) -> None:
    chance = random.Random(seed)
    nodes = odd_nodes(chance)
    room = {node.name: Room(node) for node in nodes}
    engine = Engine([published(policy, MIXED, chance.randrange)], patience=None)
    engine.learn([events.NodeChanged(node) for node in nodes], 0.0)
    placed = 0
    for i in range(80):
        cpu = chance.choice((0, 100, 4000, 64_000, 250_000, 10**14))
        memory = chance.choice((0, 0, 1, GIB, 1 << 50))
        gpus, milli = chance.choice(((0, 0), (1, 50), (1, 310), (1, WHOLE), (2, WHOLE), (8, WHOLE)))
        model = chance.choice(("", "", "A100", "H100"))
        spec = make.spec(
            cpu=cpu,
            memory=memory,
            whole=gpus if milli == WHOLE else 0,
            slice_mib=milli * MIB_PER_MILLI if milli < WHOLE else 0,
            models=model if gpus else "",
        )
        pod = make.pod(f"p{i}", spec, scheduler=policy, created=float(i))
        bound = [a for a in engine.step([events.PodChanged(pod)], float(i)) if isinstance(a, Bind)]
        fits = any(each.holds(cpu, memory, gpus, milli, model) for each in room.values())
        assert bool(bound) == fits, spec
        if not bound:
            engine.step([events.PodGone(pod.uid)], float(i))
            continue
        slots = [share.index for _, shares in bound[0].assignment for share in shares]
        assert len(set(slots)) == gpus
        room[bound[0].node].take(cpu, memory, slots, milli)
        engine.step([events.BindDone(pod.uid)], float(i))
        placed += 1
    assert placed


def hostile_spec(chance: random.Random) -> PodSpec:
    largest = 2**63 - 1
    cpu = chance.choice((0, 1, 4000, 10**15, largest, 3 * largest))
    memory = chance.choice((0, 1, GIB, 1 << 60, 3 * largest))
    models = chance.choice(("", "T4", "A100,T4", "Nope"))
    if chance.random() < 0.4:
        return make.spec(cpu=cpu, memory=memory, whole=chance.choice((0, 1, 2, largest)))
    return make.spec(
        cpu=cpu,
        memory=memory,
        slice_mib=chance.choice((1, 3000, 10_000, 10**6, largest)),
        compute=chance.choice((0, 1, 60, 100)),
        soft=chance.random() < 0.5,
        models=models,
    )


def hostile_nodes(chance: random.Random) -> list[Node]:
    def gpu(node: str, index: int) -> make.Gpu:
        model = chance.choice(("A100", "T4"))
        return make.gpu(node, index, model, chance.choice((1, 9000, 10_000, 10**6)))

    nodes = [
        make.node(
            f"n{i}",
            cpu=chance.choice((0, 1, 96_000, 10**15)),
            memory=chance.choice((0, 1, 512 * GIB, 1 << 60)),
            gpus=[gpu(f"n{i}", slot) for slot in range(chance.choice((0, 1, 2, 8)))],
            factor=chance.choice((1.0, 1.5, 2.0)),
        )
        for i in range(chance.choice((1, 3, 12)))
    ]
    return [*nodes, make.node("undescribed", nameless_gpus=chance.choice((1, 4)))]


@pytest.mark.parametrize("seed", range(6))
def test_opportunity_cost_is_a_number_whatever_is_asked_of_whatever_nodes(seed: int) -> None:
    chance = random.Random(seed)
    stream = Stream(*hostile_nodes(chance))
    plugin = profile("OpportunityCost").scores[-1]
    for _ in range(40):
        spec = hostile_spec(chance)
        cluster = stream.engine.view.cluster
        score = plugin.score(spec, cluster)
        assert score is not None
        with np.errstate(all="raise", under="ignore"):
            every = score(slice(0, cluster.columns.n))  # type: ignore[operator]
            alone = [score(np.array([row]))[0] for row in range(every.size)]  # type: ignore[operator]
        assert np.isfinite(every).all()
        assert (every >= 0).all(), "less would be no node at all"
        assert every.tolist() == alone
        stream.place(spec)

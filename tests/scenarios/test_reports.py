"""Owners of waiting pods are told why, and again only when the reasons change."""

import itertools
import random

import make
from alnair.model.cluster import Taint
from alnair.scheduler.diagnose import diagnose, find
from world import World

_NO_DIGITS = str.maketrans("", "", "0123456789")
TAINT = Taint("gpu", "NoSchedule", "v")


def reasons(world: World, name: str) -> str:
    record = find(world.engine, "default", name)
    assert record is not None
    return diagnose(world.engine, record, world.now).message.translate(_NO_DIGITS)


def test_ten_minutes_of_a_changing_cluster_give_an_event_per_change_of_the_reasons() -> None:
    rng = random.Random(4)
    world = World(*(make.node(f"n{i}", cpu=4000) for i in range(4)), check=False)
    world.create(make.pod("big", make.spec(cpu=16_000)))
    world.declare(make.gang("g", 6))
    world.create(*make.members("g", 6, make.spec(cpu=3000)))
    seen: dict[str, list[str]] = {"big": [], "g-0": []}
    for number in range(300):
        world.now += 2.0
        name = f"n{rng.randrange(4)}"
        match rng.randrange(8):
            case 0:  # another reason beside the first one, or it goes
                taints = [TAINT] * rng.randrange(2)
                world.put(make.node(name, cpu=4000 + rng.randrange(9), taints=taints))
            case 1 | 2 | 3:  # no news but the numbers
                world.put(make.node(name, cpu=4000 + rng.randrange(9)))
            case _:
                world.create(make.pod(f"s{number}", make.spec(cpu=10), created=world.now))
                if rng.random() < 0.7:
                    world.step()
                    while world.outbox:
                        world.carry_out()
                    world.delete(f"s{number}")
        world.settle(1.9)
        for pod, texts in seen.items():
            text = reasons(world, pod)
            if not texts or texts[-1] != text:
                texts.append(text)
    for pod, texts in seen.items():
        told = [r.message.translate(_NO_DIGITS) for r in world.reports if r.pod.name == pod]
        assert 1 <= len(told) <= len(texts)
        assert all(a != b for a, b in itertools.pairwise(told)), "the same again"
        assert len(texts) > 10
    assert sum(r.pod.name == "g-0" for r in world.reports) > 10, "it is tried and told again"

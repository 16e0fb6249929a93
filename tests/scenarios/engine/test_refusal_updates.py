"""Owners of waiting pods are told why, and again only when the reasons change."""

import itertools
import random

from alnair.model.nodes import Taint
from alnair.model.quota import Quota
from alnair.scheduler.advice.diagnose import diagnose, find
from kit import make
from kit.world import World

_NO_DIGITS = str.maketrans("", "", "0123456789")
TAINT = Taint("gpu", "NoSchedule", "v")


def reasons(world: World, name: str) -> str:
    record = find(world.engine.view, "default", name)
    assert record is not None
    return diagnose(world.engine.view, record, world.now).message.translate(_NO_DIGITS)


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


def test_pods_that_nothing_helps_hear_of_new_reasons_too() -> None:
    world = World(make.node("n", cpu=4000), check=False)
    world.create(*(make.pod(f"big-{i}", make.spec(cpu=16_000)) for i in range(3)))
    world.create(make.pod("taller", make.spec(cpu=17_000)))
    world.settle(1.0)
    assert world.engine.update_refusals() == []
    before = len(world.reports)
    world.put(make.node("n", cpu=4000, taints=[TAINT]))
    world.settle(30.0)
    assert len(world.reports) == before, "it cannot help, so nobody is tried"
    told = {action.pod.name: action.message for action in world.engine.update_refusals()}
    assert told.keys() == {"big-0", "big-1", "big-2", "taller"}
    assert all("untolerated taint" in text for text in told.values())
    assert world.engine.update_refusals() == [], "once"
    world.put(make.node("n", cpu=20_000))
    world.settle(1.0)
    assert world.where("big-0") == ["n"], "and it is tried as before"


def test_a_pod_that_a_quota_holds_back_is_not_told_of_nodes() -> None:
    world = World(make.node("n", cpu=4000), check=False)
    world.set_object("ElasticQuota", "team", Quota("team", {}, {"cpu": 1000}), "default")
    world.create(make.pod("p", make.spec(cpu=2000)))
    world.settle(1.0)
    assert "quota" in world.reports[-1].message.lower()
    world.put(make.node("n", cpu=4000, taints=[TAINT]))
    assert world.engine.update_refusals() == []


def test_those_whose_room_another_took_hear_of_new_reasons_later_and_of_the_same_never() -> None:
    world = World(make.node("n", cpu=5100), make.node("m", cpu=4000), check=False)
    world.create(*(make.pod(f"p{i}", make.spec(cpu=5000 + i), created=float(i)) for i in range(4)))
    world.settle(1.0)
    before = len(world.reports)
    world.delete("p0")
    world.settle(1.0)
    assert world.placed() == {"p1"}
    assert [r.kind for r in world.reports[before:]] == ["Scheduled"]
    assert world.engine.update_refusals() == []
    world.create(make.pod("small", make.spec(cpu=10, memory=32 * 2**30)))
    world.settle(1.0)
    before = len(world.reports)
    world.delete("p1")
    world.settle(1.0)
    assert world.placed() == {"p2", "small"}
    assert [r.kind for r in world.reports[before:]] == ["Scheduled"]
    told = {action.pod.name: action.message for action in world.engine.update_refusals()}
    assert told.keys() == {"p3"}
    assert "Insufficient memory" in told["p3"]
    assert world.engine.update_refusals() == []

"""The engine dies at any moment; a new one takes over from what the API server has."""

import random

import msgspec
import pytest

from alnair.model.action import Bind, Evict, WritePlan
from kit import make
from kit.world import World


@pytest.fixture(autouse=True, params=["from_nothing", "from_standby"])
def who_takes_over(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is told what there is, or one that has learned all the time."""
    monkeypatch.setattr(World, "stands_by", request.param == "from_standby")


def half_bound(done: int, size: int = 4, timeout: int = 60) -> World:
    """A gang whose plan is written and of which so many members are bound when the engine dies."""
    world = World(make.node("n0", gpus=2), make.node("n1", gpus=2), make.node("n2", gpus=1))
    world.declare(make.gang("g", size, timeout=timeout))
    world.create(*make.members("g", size, make.spec(whole=1)))
    world.step()
    world.carry_out()
    world.step()
    assert len(world.outbox) == size
    world.crash(range(done))
    return world


def planned(world: World) -> dict[str, tuple[str, dict[str, list[int]]]]:
    (plan,) = [a.plan for a in world.log if isinstance(a, WritePlan) and a.plan]
    return plan


def placed_as(world: World) -> dict[str, tuple[str, dict[str, list[int]]]]:
    return {
        p.name: (p.node, {c: [s.index for s in parts] for c, parts in p.assignment})
        for p in world.pods.values()
        if p.node
    }


@pytest.mark.parametrize("done", [1, 2, 3, 4])
def test_a_gang_cut_short_is_completed_as_planned(done: int) -> None:
    world = half_bound(done)
    world.settle()
    assert placed_as(world) == planned(world)
    assert world.gangs["default", "g"].plan == {}
    assert not [a for a in world.log if isinstance(a, Evict)]


def test_a_plan_of_which_nothing_was_bound_is_made_anew() -> None:
    world = half_bound(0)
    world.settle()
    assert len(world.placed()) == 4
    assert world.gangs["default", "g"].plan == {}


def test_it_is_completed_elsewhere_if_the_planned_place_is_taken() -> None:
    world = half_bound(3)
    (missing,) = set(planned(world)) - set(placed_as(world))
    node, gpus = planned(world)[missing]
    taken = world.nodes[node].gpus[gpus["main"][0]]
    world.create(
        make.pod(
            "squatter",
            make.spec(whole=1),
            node=node,
            assignment=(("main", (make.share(taken),)),),
        )
    )
    world.restart()
    world.settle()
    assert world.where(missing) != [""]
    world.check_room()


def test_it_is_completed_elsewhere_if_the_planned_node_is_gone() -> None:
    world = half_bound(3)
    (missing,) = set(planned(world)) - set(placed_as(world))
    world.remove(planned(world)[missing][0])
    world.put(make.node("spare", gpus=1))
    world.restart()
    world.settle()
    assert world.where(missing)[0] in world.nodes
    world.check_room()


@pytest.mark.parametrize(
    "plan",
    [
        {"main": []},
        {"main": [0, 1]},
        {"main": [99]},
        {"other": [0]},
        {"main": [-1]},
    ],
)
def test_a_plan_that_does_not_suit_the_pod_is_not_followed(plan: dict[str, list[int]]) -> None:
    world = half_bound(3)
    (missing,) = set(planned(world)) - set(placed_as(world))
    gang = world.gangs["default", "g"]
    wrong = {**gang.plan, missing: (gang.plan[missing][0], plan)}
    world.declare_exactly(msgspec.structs.replace(gang, plan=wrong))
    world.restart()
    world.settle()
    assert len(world.placed()) == 4
    world.check_room()


def test_what_is_bound_is_evicted_if_the_gang_cannot_be_completed_in_time() -> None:
    world = half_bound(2, timeout=30)
    world.foreign(make.pod("theirs", make.spec(cpu=8000)), "n2")
    for name in ("n0", "n1"):
        world.put(msgspec.structs.replace(world.nodes[name], unschedulable=True))
    world.now += 10.0
    world.restart()
    world.settle(15.0)
    assert not [a for a in world.log if isinstance(a, Evict)]
    assert len(world.placed()) == 2
    world.settle(300.0)
    evicted = [a for a in world.log if isinstance(a, Evict)]
    assert len(evicted) == 2
    assert {a.reason for a in evicted} == {"GangIncomplete"}
    assert not world.placed()
    assert world.gangs["default", "g"].plan == {}, "nothing is left of the plan"
    assert world.engine.next_wake(world.now) is None


def test_a_gang_that_was_left_long_ago_is_completed_if_it_can_be() -> None:
    world = half_bound(2, timeout=30)
    world.now += 1000.0  # however long nobody led, a new leader tries first
    world.restart()
    world.settle()
    assert not [a for a in world.log if isinstance(a, Evict)]
    assert len(world.placed()) == 4


def test_a_gang_that_was_left_long_ago_and_fits_no_more_is_evicted_at_once() -> None:
    world = half_bound(2, timeout=30)
    for name in ("n0", "n1", "n2"):
        world.put(msgspec.structs.replace(world.nodes[name], unschedulable=True))
    world.now += 1000.0
    world.restart()
    world.settle(5.0)
    assert len([a for a in world.log if isinstance(a, Evict)]) == 2
    assert not world.placed()


def test_an_eviction_that_fails_is_not_repeated_in_a_hurry() -> None:
    world = half_bound(2, timeout=5)
    world.remove("n2")
    for name in ("n0", "n1"):
        world.put(msgspec.structs.replace(world.nodes[name], unschedulable=True))
    world.fault = lambda action: "forbidden" if isinstance(action, Evict) else ""
    world.settle(60.0)
    tries = [a for a in world.log if isinstance(a, Evict)]
    assert 2 <= len(tries) <= 2 * 60 / 5 + 2
    world.fault = lambda action: ""
    world.settle(60.0)
    assert not world.placed()


def test_a_plan_that_cannot_be_cleared_is_not_cleared_in_a_hurry() -> None:
    world = half_bound(4)
    world.fault = lambda action: "no" if isinstance(action, WritePlan) else ""
    before = len(world.log)
    world.settle(60.0)
    assert 2 <= len([a for a in world.log[before:] if isinstance(a, WritePlan)]) <= 60 / 5 + 2
    world.fault = lambda action: ""
    world.settle(60.0)
    assert world.gangs["default", "g"].plan == {}


def test_a_recovered_member_is_never_bound_a_second_time() -> None:
    world = half_bound(2)
    world.settle()
    assert set(world.bound.values()) == {1}


def test_nothing_is_decided_before_all_that_is_there_was_learnt() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("old", make.spec(cpu=800), node="n"), make.pod("new", make.spec(cpu=800)))
    world.restart()
    assert not world.engine.in_flight
    world.settle()
    assert world.where("new") == [""]


@pytest.mark.parametrize("seed", range(20))
def test_killed_at_every_turn_it_still_places_everything_once(seed: int) -> None:
    chance = random.Random(seed)
    world = World(*(make.node(f"n{i}", cpu=4000, gpus=4) for i in range(4)), seed=seed)
    for number in range(4):
        world.declare(make.gang(f"g{number}", 3))
        world.create(*make.members(f"g{number}", 3, make.spec(cpu=500, whole=1)))
    world.create(*(make.pod(f"p{i}", make.spec(cpu=300)) for i in range(20)))
    for _ in range(60):
        world.step(limit=chance.choice((1, 3, 64)), deliver=chance.choice((1, 4, None)))
        for _ in range(chance.randrange(3)):
            if world.outbox:
                world.carry_out(chance.randrange(len(world.outbox)))
        if chance.random() < 0.3:
            requests = range(len(world.outbox))
            world.crash([n for n in requests if chance.random() < 0.5])
            world.check_room()
    world.settle()
    world.check_room()
    world.check_gangs()
    assert len(world.placed()) == 32
    assert set(world.bound.values()) == {1}
    assert all(not gang.plan for gang in world.gangs.values())
    assert [a for a in world.log if isinstance(a, Bind)]

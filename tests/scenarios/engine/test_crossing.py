"""Another scheduler binds on the same nodes: when both gave the same room away, ours leaves."""

import itertools

import pytest

from alnair.model.action import Action, Evict
from kit import make
from kit.world import World

_numbers = itertools.count()


def evicted(world: World) -> list[str]:
    return [a.pod.name for a in world.log if isinstance(a, Evict)]


def bound(world: World, *names: str, cpu: int = 400) -> None:
    """Create pods one second apart, and let each be bound."""
    for name in names:
        world.create(make.pod(name, make.spec(cpu=cpu)))
        world.settle()
        world.now += 1.0


def foreign(world: World, cpu: int = 400) -> None:
    world.foreign(make.pod(f"theirs-{next(_numbers)}", make.spec(cpu=cpu)), "n")


def test_ours_leaves_when_it_was_bound_just_before_theirs_was_seen() -> None:
    world = World(make.node("n", cpu=1000))
    bound(world, "ours", cpu=800)
    foreign(world)
    world.step()
    (evict,) = world.outbox
    assert isinstance(evict, Evict)
    assert (evict.pod.name, evict.reason) == ("ours", "NodeCrossed")
    assert evict.message == "another scheduler placed a pod on n at the same moment"
    world.settle()
    world.check_room(ours_only=False)


def test_the_newest_go_first_and_only_as_many_as_needed() -> None:
    world = World(make.node("n", cpu=2000))
    bound(world, "a", "b", "c", "d", "e")
    foreign(world, cpu=500)
    world.settle()
    assert evicted(world) == ["e", "d"]
    foreign(world, cpu=300)
    world.settle()
    assert evicted(world) == ["e", "d"], "there was room for that"
    foreign(world, cpu=100)
    world.settle()
    assert evicted(world) == ["e", "d", "c"]
    world.check_room(ours_only=False)


def test_order_is_kept_when_a_second_crossing_follows_at_once() -> None:
    world = World(make.node("n", cpu=2000))
    bound(world, "a", "b", "c", "d", "e")
    world.fault = lambda action: "" if not isinstance(action, Evict) else "not yet"
    for _ in range(3):
        foreign(world)
        world.step()
    assert [a.pod.name for a in world.outbox if isinstance(a, Evict)] == ["e", "d", "c"]


def test_ours_stays_where_theirs_takes_nothing_of_what_the_node_has_lost() -> None:
    """An agent is replaced: the kubelet has no GPU for a moment, and the next agent's pod comes."""
    world = World(make.node("n", cpu=2000, gpus=1))
    world.create(make.pod("ours", make.spec(cpu=100, whole=1)))
    world.settle()
    assert world.where("ours") == ["n"]
    world.put(make.node("n", cpu=2000, gpus=0))
    foreign(world, cpu=100)
    world.settle()
    assert evicted(world) == []


def test_pods_that_would_not_help_stay() -> None:
    world = World(make.node("n", cpu=2000, gpus=1))
    world.create(make.pod("gpu", make.spec(cpu=100, whole=1)))
    world.settle()
    world.now += 1.0
    bound(world, "cpu")
    world.foreign(make.pod("theirs", make.spec(cpu=100, whole=1)), "n")
    world.settle()
    assert evicted(world) == ["gpu"], "the newer one holds no GPU"


def test_two_over_committed_gpus_cost_two_pods() -> None:
    world = World(make.node("n", gpus=2))
    for name in ("a", "b"):
        world.create(make.pod(name, make.spec(whole=1)))
        world.settle()
    world.foreign(make.pod("theirs", make.spec(whole=2)), "n")
    world.settle()
    assert evicted(world) == ["b", "a"]


def test_old_pods_of_ours_never_go() -> None:
    world = World(make.node("n", cpu=1000))
    bound(world, "old", cpu=800)
    world.now += 10.0
    foreign(world)
    world.settle()
    assert evicted(world) == []


def test_nobody_goes_when_only_ours_are_there() -> None:
    node = make.node("n", cpu=1000)
    world = World(node)
    bound(world, "a", "b")
    world.put(make.node("n", cpu=500))
    world.update("a", spec=make.spec(cpu=900))
    world.settle()
    assert evicted(world) == []


def test_nobody_goes_for_a_resize_beside_their_pods() -> None:
    world = World(make.node("n", cpu=1000))
    foreign(world, cpu=100)
    bound(world, "a", "b")
    world.update("a", spec=make.spec(cpu=900))
    world.settle()
    assert evicted(world) == []


def test_what_is_on_the_way_is_evicted_only_once_it_is_bound() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("ours", make.spec(cpu=800)))
    world.step()
    foreign(world)
    world.step()
    assert evicted(world) == []
    world.carry_out()
    world.step()
    assert evicted(world) == ["ours"]
    world.settle()
    assert evicted(world) == ["ours"]
    world.check_room(ours_only=False)


@pytest.mark.parametrize("shown", [1, 2])
def test_it_is_evicted_once_whether_the_watch_or_the_answer_tells(shown: int) -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("ours", make.spec(cpu=800)))
    world.step()
    foreign(world)
    world.step()
    world.carry_out()
    world.inbox.rotate(shown)
    world.step(deliver=1)
    assert evicted(world) == ["ours"]
    world.step()
    assert evicted(world) == ["ours"]


def test_a_binding_that_fails_needs_no_eviction() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("ours", make.spec(cpu=800)))
    world.step()
    foreign(world)
    world.step()
    world.fault = lambda action: "injected"
    world.carry_out()
    world.settle()
    assert evicted(world) == []
    assert world.where("ours") == [""]


def test_a_failed_eviction_is_asked_for_again_while_it_is_needed() -> None:
    refusals = [2]

    def fault(action: Action) -> str:
        if isinstance(action, Evict) and refusals[0]:
            refusals[0] -= 1
            return "forbidden"
        return ""

    world = World(make.node("n", cpu=1000))
    world.fault = fault
    bound(world, "ours", cpu=800)
    foreign(world)
    world.settle()
    assert evicted(world) == ["ours"] * 3
    world.check_room(ours_only=False)


def test_no_second_eviction_when_theirs_left_meanwhile() -> None:
    world = World(make.node("n", cpu=1000))
    world.fault = lambda action: "forbidden" if isinstance(action, Evict) else ""
    bound(world, "ours", cpu=800)
    foreign(world)
    world.step()
    world.carry_out()
    world.delete(next(p.name for p in world.pods.values() if p.name != "ours"))
    world.settle()
    assert evicted(world) == ["ours"]
    assert not world.engine.view.pods[world.pod("ours").uid].evicting


def test_room_that_is_about_to_be_left_counts_as_left() -> None:
    world = World(make.node("n", cpu=1000))
    bound(world, "a", "b")
    world.update("a", deleting=True)
    foreign(world)
    world.settle()
    assert evicted(world) == []


@pytest.mark.parametrize(("age", "goes"), [(3.0, ["ours"]), (60.0, [])])
def test_a_new_leader_judges_by_when_a_pod_was_bound(age: float, goes: list[str]) -> None:
    world = World(make.node("n", cpu=1000))
    bound(world, "ours", cpu=800)
    foreign(world)
    world.now = world.pod("ours").bound_at + age
    world.restart()
    world.settle()
    assert evicted(world) == goes


def test_a_new_leader_leaves_pods_whose_age_is_unknown() -> None:
    world = World(make.node("n", cpu=1000))
    foreign(world)
    world.create(make.pod("ours", make.spec(cpu=800), node="n"))
    world.restart()
    world.settle()
    assert evicted(world) == []

"""A long backlog of pods that do not fit costs little, and none of it is forgotten."""

import pytest

from alnair.model.action import Bind
from alnair.model.workload import PodSpec
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.queue.queue import LOOKS
from alnair.scheduler.queue.unit import Place
from kit import make
from kit.invariants import check_hopes
from kit.world import World


class Counting:
    """Counts evaluations asked for: the work of looking and of trying."""

    def __init__(self, world: World, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        evaluations = world.engine.view._context.evaluations
        self._of = evaluations.of
        patch.setattr(evaluations, "of", self.of)

    def of(self, spec: PodSpec, profile: Profile) -> Evaluation:
        self.count += 1
        return self._of(spec, profile)

    def spent(self) -> int:
        count, self.count = self.count, 0
        return count


def backlog(world: World, count: int, *, distinct: bool) -> None:
    world.create(
        *(
            make.pod(f"b{i}", make.spec(cpu=5000 + i * distinct), created=float(i))
            for i in range(count)
        )
    )
    world.settle()
    assert world.engine.view.count(Place.PARKED) == count


def test_ten_thousand_pods_of_one_class_cost_one_look_at_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(make.node("n", cpu=4000), check=False)
    backlog(world, 10_000, distinct=False)
    work = Counting(world, monkeypatch)
    for number in range(20):
        world.put(make.node("n", cpu=4000 + number))
        world.step()
        assert work.spent() <= 2
    world.put(make.node("big", cpu=16_000))
    world.settle()
    assert world.placed() == {"b0", "b1", "b2"}, "the oldest first"
    assert work.spent() <= 3 * 2 + 2


def test_a_thousand_classes_cost_a_bounded_number_of_looks_at_each_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(make.node("n", cpu=4000), check=False)
    backlog(world, 1000, distinct=True)
    work = Counting(world, monkeypatch)
    for name in ("m0", "m1"):
        world.put(make.node(name, cpu=5500, unschedulable=True))
    steps = 0
    while world.engine.next_wake(world.now) == world.now or not steps:
        world.step()
        assert work.spent() <= 2 * LOOKS
        steps += 1
    assert steps >= 500 // LOOKS, "half of them may hope, until the filters are asked"


def test_a_thousand_classes_that_a_change_cannot_help_cost_one_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(make.node("n", cpu=4000), check=False)
    backlog(world, 1000, distinct=True)
    work = Counting(world, monkeypatch)
    world.put(make.node("n", cpu=4001))
    world.step()
    assert world.engine.next_wake(world.now) != world.now
    assert work.spent() == 0


def test_those_that_a_change_may_help_are_found_behind_many_that_it_cannot() -> None:
    world = World(make.node("n", cpu=4000), check=False)
    backlog(world, 1000, distinct=True)
    world.create(make.pod("small", make.spec(cpu=4500), created=2000.0))
    world.settle()
    world.put(make.node("n", cpu=4600))
    world.step()
    assert [a.pod.name for a in world.outbox if isinstance(a, Bind)] == ["small"]


def test_the_only_pod_of_a_thousand_that_fits_now_is_found_though_changes_never_end() -> None:
    world = World(make.node("n", cpu=4000), check=False)
    backlog(world, 500, distinct=True)
    world.put(make.node("fits", cpu=5000))
    for number in range(-(-500 // LOOKS) + 1):
        world.put(make.node("n", cpu=4000, labels={"round": str(number)}))
        world.step()
    assert [a.pod.name for a in world.outbox if isinstance(a, Bind)] == ["b0"]


@pytest.mark.parametrize("limit", [1, 8])
def test_a_step_decides_no_more_than_it_may(limit: int) -> None:
    world = World(make.node("n", cpu=100_000, pods=1000))
    world.create(*(make.pod(f"p{i}") for i in range(50)))
    actions = world.step(limit=limit)
    assert len(actions) == limit
    assert world.engine.next_wake(world.now) == world.now
    world.settle()
    assert len(world.placed()) == 50


def test_what_was_refused_everywhere_is_not_looked_at_closely_before_a_node_gets_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cordoned = make.node("cordoned", cpu=64_000, unschedulable=True)
    world = World(cordoned, make.node("n", cpu=4000), check=False)
    backlog(world, 20, distinct=True)
    work = Counting(world, monkeypatch)
    world.put(make.node("n", cpu=4001))
    world.settle()
    assert work.spent() == 0
    world.put(make.node("n", cpu=5000))
    world.settle()
    assert world.placed() == {"b0"}


def test_those_whose_room_another_took_are_parked_without_looking_at_all_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(make.node("full", cpu=1000), make.node("n", cpu=4000), check=False)
    backlog(world, 20, distinct=True)
    work = Counting(world, monkeypatch)
    world.put(make.node("n", cpu=5100))  # each of the 20 would fit alone
    world.settle()
    work.spent()
    world.delete("b0")
    world.settle()
    assert world.placed() == {"b1"}
    assert work.spent() <= 2


def test_a_class_that_takes_the_place_of_another_is_not_taken_for_it() -> None:
    world = World(make.node("n", cpu=4000), check=False)
    world.create(make.pod("large", make.spec(cpu=5000)))
    world.settle()
    check_hopes(world.engine)
    world.delete("large")
    world.create(make.pod("small", make.spec(cpu=3000, selector={"disk": "ssd"})))
    world.settle()
    check_hopes(world.engine)
    hopes = world.engine._quick_check._hopes
    (waiting,) = world.engine._queue._parked.values()
    assert hopes.lacks(waiting, 0) is False

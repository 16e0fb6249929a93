"""Gangs through the whole engine: together or not at all."""

import pytest

from alnair.model.action import Action, Bind, WritePlan
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.state.accounts import Record
from kit import make
from kit.world import World


def cluster(count: int, *, gpus: int = 0, cpu: int = 8000) -> World:
    return World(*(make.node(f"n{i}", gpus=gpus, cpu=cpu) for i in range(count)))


def actions(world: World, kind: type) -> list[Action]:
    return [a for a in world.log if isinstance(a, kind)]


def test_a_gang_that_fits_is_bound_whole_after_its_plan_was_written() -> None:
    world = cluster(2, gpus=2)
    world.declare(make.gang("g", 4))
    world.create(*make.members("g", 4, make.spec(whole=1)))
    (first,) = world.step()
    assert isinstance(first, WritePlan)
    assert sorted(first.plan) == ["g-0", "g-1", "g-2", "g-3"]
    assert sorted((node, *gpus["main"]) for node, gpus in first.plan.values()) == [
        ("n0", 0),
        ("n0", 1),
        ("n1", 0),
        ("n1", 1),
    ]
    assert world.engine.in_flight == 0
    world.carry_out()
    world.step()
    assert [type(a) for a in world.outbox] == [Bind] * 4
    assert world.engine.in_flight == 4
    world.settle()
    for pod in world.pods.values():
        node, gpus = first.plan[pod.name]
        ((_, (share,)),) = pod.assignment
        assert (pod.node, [share.index]) == (node, gpus["main"])
    world.check_room()
    assert world.gangs["default", "g"].plan == {}, "the plan is cleared in the end"
    assert world.engine.next_wake(world.now) is None


def test_a_gang_that_does_not_fit_whole_holds_nothing() -> None:
    world = cluster(1, gpus=3)
    world.declare(make.gang("g", 4))
    world.create(*make.members("g", 4, make.spec(whole=1)))
    world.create(make.pod("lone", make.spec(whole=3), created=1.0))
    world.settle()
    assert world.placed() == {"lone"}
    message = next(r.message for r in world.reports if r.pod.name == "g-0")
    assert message == (
        "gang default/g: 3 of the 4 pods that must start together fit; for g-3: "
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    )
    assert not actions(world, WritePlan)


def test_a_waiting_gang_starts_when_there_is_room_for_all() -> None:
    world = cluster(1, gpus=2)
    world.declare(make.gang("g", 4))
    world.create(*make.members("g", 4, make.spec(whole=1)))
    world.settle()
    world.put(make.node("m1", gpus=1))
    world.settle()
    assert not world.placed()
    world.put(make.node("m2", gpus=1))
    world.settle()
    assert len(world.placed()) == 4


def test_a_gang_waits_for_its_members() -> None:
    world = cluster(2)
    world.declare(make.gang("g", 3))
    first, second, third = make.members("g", 3)
    world.create(first, second)
    world.settle()
    assert world.reports[-1].message == (
        "gang default/g needs 3 pods and has 2: waiting for 1 more"
    )
    world.create(third)
    world.settle()
    assert len(world.placed()) == 3


def test_a_gang_waits_for_its_pod_group() -> None:
    world = cluster(1)
    world.create(*make.members("g", 2))
    world.settle()
    assert world.reports[-1].message == (
        "PodGroup default/g does not exist: create it, or drop the pod's label"
    )
    world.declare(make.gang("g", 2))
    world.settle()
    assert len(world.placed()) == 2


def test_a_gang_may_start_with_fewer_when_its_minimum_is_lowered() -> None:
    world = cluster(1, gpus=2)
    world.declare(make.gang("g", 3))
    world.create(*make.members("g", 3, make.spec(whole=1)))
    world.settle()
    assert not world.placed()
    world.declare(make.gang("g", 2))
    world.settle()
    assert len(world.placed()) == 2


def test_members_beyond_the_minimum_come_along_if_they_fit_and_follow_if_not() -> None:
    world = cluster(1, gpus=3)
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 5, make.spec(whole=1)))
    world.settle()
    assert len(world.placed()) == 3
    world.put(make.node("m", gpus=1))
    world.settle()
    assert len(world.placed()) == 4


def test_a_lost_member_is_replaced_without_the_others() -> None:
    world = cluster(1, gpus=2)
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 2, make.spec(whole=1)))
    world.settle()
    world.delete("g-0")
    world.settle()
    world.create(make.pod("g-new", make.spec(whole=1), group="g"))
    world.settle()
    assert world.placed() == {"g-1", "g-new"}


def test_finished_members_count_as_started() -> None:
    world = cluster(1, gpus=1)
    world.declare(make.gang("g", 1))
    world.create(*make.members("g", 1, make.spec(whole=1)))
    world.settle()
    world.update("g-0", finished=True)
    world.declare(make.gang("g", 2))
    world.create(make.pod("g-1", make.spec(whole=1), group="g"))
    world.settle()
    assert world.where("g-1") == ["n0"]


def test_members_of_one_gang_may_differ() -> None:
    world = World(make.node("cpu"), make.node("gpu", gpus=1))
    world.declare(make.gang("g", 2))
    world.create(make.pod("head", group="g"), make.pod("work", make.spec(whole=1), group="g"))
    world.settle()
    assert world.where("work") == ["gpu"]
    assert len(world.placed()) == 2


def test_a_member_that_moves_to_another_gang_is_placed_once() -> None:
    world = cluster(1)
    world.declare(make.gang("g", 3))
    world.create(*make.members("g", 2))
    world.settle()
    world.update("g-0", group="")
    world.settle()
    assert world.placed() == {"g-0"}
    world.declare(make.gang("h", 2))
    world.update("g-1", group="h")
    world.create(make.pod("h-1", group="h"))
    world.settle()
    assert world.placed() == {"g-0", "g-1", "h-1"}


def test_a_member_that_cannot_be_placed_at_all_holds_up_only_who_needs_it() -> None:
    world = cluster(1)
    world.declare(make.gang("g", 2))
    world.create(
        make.pod("bad", group="g", problem="'1ki' is not a quantity"),
        make.pod("one", group="g"),
    )
    world.settle()
    assert not world.placed()
    assert "for bad: '1ki' is not a quantity" in world.reports[-1].message
    world.create(make.pod("two", group="g"))
    world.settle()
    assert world.placed() == {"one", "two"}
    world.update("bad", problem="")
    world.settle()
    assert world.placed() == {"one", "two", "bad"}


# --- while the plan is written --------------------------------------------------------------------


def test_a_plan_that_cannot_be_written_gives_everything_back_and_is_tried_again() -> None:
    world = cluster(1, gpus=2)
    left = [2]

    def fault(action: Action) -> str:
        if isinstance(action, WritePlan) and left[0]:
            left[0] -= 1
            return "injected"
        return ""

    world.fault = fault
    start = world.now
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 2, make.spec(whole=1)))
    world.settle()
    assert len(world.placed()) == 2
    assert world.now - start >= 3.0


def test_members_that_come_while_the_plan_is_written_follow() -> None:
    world = cluster(1, gpus=3)
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 2, make.spec(whole=1)))
    world.step()
    world.create(make.pod("g-late", make.spec(whole=1), group="g"))
    world.step()
    assert world.engine.in_flight == 0
    world.settle()
    assert len(world.placed()) == 3


@pytest.mark.parametrize("loss", ["deleted", "deleting", "node", "gpus"])
def test_a_gang_that_loses_a_part_while_its_plan_is_written_is_not_begun(loss: str) -> None:
    world = World(make.node("n0", gpus=1), make.node("n1", gpus=1))
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 2, make.spec(whole=1)))
    world.step()
    if loss == "deleted":
        world.delete("g-0")
    elif loss == "deleting":
        world.update("g-0", deleting=True)
    elif loss == "node":
        world.remove("n0")
    else:
        world.put(make.node("n0", gpus=1, problem="its GPUs cannot be read any more"))
    world.settle()
    assert not actions(world, Bind)
    assert world.engine.in_flight == 0
    if loss in ("node", "gpus"):
        world.put(make.node("n2", gpus=1))
    else:
        world.create(make.pod("g-new", make.spec(whole=1), group="g"))
    world.settle()
    assert len(world.placed()) == 2


def test_a_crossing_while_the_plan_is_written_stops_the_gang() -> None:
    world = cluster(1, cpu=1000)
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 2, make.spec(cpu=500)))
    world.step()
    world.foreign(make.pod("theirs", make.spec(cpu=100)), "n0")
    world.settle()
    assert not actions(world, Bind)
    assert world.where("g-0", "g-1") == ["", ""]


def test_a_pod_group_that_goes_while_the_plan_is_written_stops_the_gang() -> None:
    world = cluster(1)
    world.declare(make.gang("g", 2))
    world.create(*make.members("g", 2))
    world.step()
    world.undeclare("g")
    world.settle()
    assert not actions(world, Bind)
    world.declare(make.gang("g", 2))
    world.settle()
    assert len(world.placed()) == 2


# --- several gangs --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_of_two_interleaved_gangs_on_room_for_one_exactly_one_runs(seed: int) -> None:
    world = World(*(make.node(f"n{i}", gpus=2) for i in range(2)), seed=seed)
    for name in "gh":
        world.declare(make.gang(name, 3))
    pods = [
        p
        for pair in zip(
            make.members("g", 3, make.spec(whole=1)),
            make.members("h", 3, make.spec(whole=1)),
            strict=True,
        )
        for p in pair
    ]
    for pod in pods:
        world.create(pod)
        world.step()
    world.settle()
    assert world.placed() in ({"g-0", "g-1", "g-2"}, {"h-0", "h-1", "h-2"})
    for name in sorted(world.placed()):
        world.update(name, finished=True)
    world.settle()
    assert len(world.placed()) == 6


def test_a_gang_that_waits_does_not_hold_up_the_pods_behind_it() -> None:
    world = cluster(2, gpus=2)
    world.declare(make.gang("big", 8))
    world.create(*make.members("big", 8, make.spec(whole=1)))
    world.create(make.pod("small", make.spec(whole=1), created=5.0))
    world.settle()
    assert world.placed() == {"small"}


def test_a_waiting_gang_is_not_tried_at_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    world = cluster(1, gpus=4)
    world.declare(make.gang("g", 8))
    world.create(*make.members("g", 8, make.spec(whole=1)))
    world.settle()
    tried = []
    place = Statement.place

    def counted(self: Statement, record: Record, profile: Profile) -> Evaluation | None:
        tried.append(record.pod.name)
        return place(self, record, profile)

    monkeypatch.setattr(Statement, "place", counted)
    for number in range(50):
        world.put(make.node("n0", gpus=4, labels={"round": str(number)}))
        world.step()
    assert len(tried) <= 8


def test_of_many_gangs_that_lack_room_each_change_tries_one_in_vain() -> None:
    world = World(make.node("n", gpus=2))
    for number in range(30):
        world.declare(make.gang(f"g{number}", 3, created=float(number)))
        world.create(*make.members(f"g{number}", 3, make.spec(whole=1)))
    world.settle()

    def tries() -> int:
        return sum(record.tries for record in world.engine.view.pods.values())

    before = tries()
    for number in range(6):
        world.now += 30.0
        world.put(make.node("n", gpus=2, labels={"round": str(number)}))
        world.settle(20.0)
    assert tries() - before <= 6 * 3, "all pods of one gang each time"
    world.put(make.node("m", gpus=1))
    world.settle()
    assert len(world.placed()) == 3
    world.check_gangs()

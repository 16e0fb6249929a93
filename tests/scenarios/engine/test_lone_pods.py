"""Lone pods through the whole engine."""

import itertools
from collections.abc import Callable

import pytest

from alnair.model import names
from alnair.model.action import Action, Bind
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from kit import invariants, make
from kit.world import World


def test_a_pod_is_bound_to_a_node_with_room() -> None:
    world = World(make.node("full", cpu=50), make.node("free"))
    world.create(make.pod("a", make.spec(cpu=1000)))
    world.settle()
    assert world.where("a") == ["free"]
    assert world.reports[-1].message == "Successfully assigned default/a to free"


def test_a_pod_that_does_not_fit_waits_and_is_placed_when_room_appears() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("a", make.spec(cpu=800)))
    world.settle()
    world.create(make.pod("b", make.spec(cpu=800)))
    world.settle()
    assert world.where("b") == [""]
    assert world.reports[-1].message == "0/1 nodes are available: 1 Insufficient cpu."
    world.delete("a")
    world.settle()
    assert world.where("b") == ["n"]


def test_without_nodes_a_pod_waits_and_says_so() -> None:
    world = World()
    world.create(make.pod("a"))
    world.settle()
    assert world.reports[-1].message == "no nodes available to schedule pods"
    world.put(make.node("n"))
    world.settle()
    assert world.where("a") == ["n"]


def test_a_finished_pod_frees_its_room_and_stays_known_as_finished() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("a", make.spec(cpu=800)))
    world.settle()
    world.update("a", finished=True)
    world.create(make.pod("b", make.spec(cpu=800)))
    world.settle()
    assert world.where("b") == ["n"]


def test_an_in_place_resize_is_counted_at_once() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("a", make.spec(cpu=800)))
    world.settle()
    world.create(make.pod("b", make.spec(cpu=600)))
    world.settle()
    assert world.where("b") == [""]
    world.update("a", spec=make.spec(cpu=400))
    world.settle()
    assert world.where("b") == ["n"]
    world.update("a", spec=make.spec(cpu=700))  # the kubelet defers what it cannot give
    world.settle()
    assert world.where("a", "b") == ["n", "n"], "a resize is no crossing"


def test_gated_and_deleting_pods_are_left_alone() -> None:
    world = World(make.node("n"))
    world.create(make.pod("gated", gated=True), make.pod("going", deleting=True))
    world.settle()
    assert world.where("gated", "going") == ["", ""]
    world.update("gated", gated=False)
    world.settle()
    assert world.where("gated") == ["n"]


def test_a_waiting_pod_that_changes_is_tried_anew() -> None:
    world = World(make.node("n", labels={"zone": "a"}))
    world.create(make.pod("a", make.spec(selector={"zone": "b"}), gated=True))
    world.update("a", gated=False)
    world.settle()
    world.update("a", spec=make.spec(selector={"zone": "a"}))
    world.settle()
    assert world.where("a") == ["n"]


def test_a_pod_that_cannot_be_read_says_why_and_is_tried_when_it_changes() -> None:
    world = World(make.node("n"))
    world.create(make.pod("a", problem="'1ki' is not a quantity"))
    world.settle()
    assert world.reports[-1].message == "'1ki' is not a quantity"
    before = len(world.log)
    world.put(make.node("m"))
    world.settle()
    assert len(world.log) == before, "no change of the cluster helps it"
    world.update("a", problem="")
    world.settle()
    assert world.where("a") != [""]


def test_pods_of_other_schedulers_count_and_are_not_touched() -> None:
    world = World(make.node("n", cpu=1000))
    world.foreign(make.pod("theirs", make.spec(cpu=800)), "n")
    world.create(
        make.pod("waiting", scheduler="default-scheduler"), make.pod("ours", make.spec(cpu=800))
    )
    world.settle()
    assert world.where("waiting", "ours") == ["", ""]
    world.update("theirs", finished=True)
    world.settle()
    assert world.where("ours") == ["n"]


def test_each_profile_name_is_served() -> None:
    world = World(make.node("n"))
    for name in (names.SCHEDULER, names.COST_SAVING, names.HIGH_PERFORMANCE):
        world.create(make.pod(name, scheduler=name))
    world.settle()
    assert len(world.placed()) == 3


def test_the_same_refusal_is_told_once_and_new_reasons_again() -> None:
    world = World(make.node("n0", cpu=10))
    world.create(make.pod("a", make.spec(cpu=800)))
    world.settle()
    for number in range(1, 5):
        world.put(make.node(f"n{number}", cpu=10))
        world.settle()
    assert len(world.reports) == 1
    world.put(make.node("cordoned", unschedulable=True))
    world.create(make.pod("b", make.spec(cpu=800)))  # the class is looked at, and still refused
    world.settle()
    assert [r.pod.name for r in world.reports] == ["a", "b"]
    assert world.reports[-1].message == (
        "0/6 nodes are available: 1 node(s) were unschedulable, 5 Insufficient cpu."
    )


# --- bindings -------------------------------------------------------------------------------------


def failing(times: int) -> Callable[[Action], str]:
    left = [times]

    def fault(action: Action) -> str:
        if isinstance(action, Bind) and left[0]:
            left[0] -= 1
            return "injected"
        return ""

    return fault


@pytest.mark.parametrize(("failures", "waited"), [(1, 1), (2, 3), (3, 7), (4, 15), (6, 35)])
def test_a_failed_binding_is_retried_after_a_back_off_that_doubles(
    failures: int, waited: float
) -> None:
    world = World(make.node("n"))
    world.fault = failing(failures)
    start = world.now
    world.create(make.pod("a"))
    world.settle()
    assert world.where("a") == ["n"]
    assert world.now - start == waited


def test_room_of_a_failed_binding_goes_to_others_meanwhile() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("a", make.spec(cpu=800)))
    world.step()
    world.create(make.pod("b", make.spec(cpu=800), created=1.0))
    world.step()
    world.fault = lambda action: "injected"
    world.carry_out()
    world.fault = lambda action: ""
    world.step()
    world.carry_out()
    world.step()
    assert world.where("a", "b") == ["", "n"]


def test_a_pod_that_goes_while_its_binding_is_under_way_leaves_no_trace() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("a", make.spec(cpu=800)))
    world.step()
    assert world.engine.in_flight == 1
    world.delete("a")
    world.step()
    assert world.engine.in_flight == 0
    world.carry_out()
    world.create(make.pod("b", make.spec(cpu=800)))
    world.settle()
    assert world.where("b") == ["n"]


def test_a_pod_marked_for_deletion_while_its_binding_is_under_way_is_not_tried_again() -> None:
    world = World(make.node("n"))
    world.create(make.pod("a"))
    world.step()
    world.update("a", deleting=True)
    world.settle()
    assert world.where("a") == [""]
    assert world.engine.in_flight == 0


@pytest.mark.parametrize("answer_first", [True, False])
def test_the_answer_and_the_watch_may_come_in_any_order(answer_first: bool) -> None:
    world = World(make.node("n"))
    world.create(make.pod("a"))
    world.step()
    world.carry_out()
    if answer_first:
        world.inbox.rotate(1)
    world.step(deliver=1)
    assert world.engine.in_flight == 0
    world.settle()
    assert [r.message for r in world.reports] == ["Successfully assigned default/a to n"]


def test_a_binding_that_failed_only_by_its_answer_counts_as_done() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(make.pod("a", make.spec(cpu=800)))
    world.step()
    (bind,) = world.outbox
    assert isinstance(bind, Bind)
    world.outbox.clear()
    world._bind(bind.pod, bind.node, bind.assignment)
    world.inbox.append(events.BindDone(bind.pod.uid, "connection lost"))
    world.settle()
    assert world.where("a") == ["n"]
    invariants.check(world.engine)


def test_a_pod_bound_elsewhere_by_somebody_is_followed() -> None:
    world = World(make.node("n", cpu=1000), make.node("m", cpu=1000))
    world.create(make.pod("a", make.spec(cpu=800)))
    world.step()
    (bind,) = world.outbox
    assert isinstance(bind, Bind)
    other = "m" if bind.node == "n" else "n"
    world.update("a", node=other)
    world.settle()
    assert world.where("a") == [other]
    world.create(make.pod("b", make.spec(cpu=800)))
    world.settle()
    assert world.where("b") == [bind.node]


def test_stale_and_repeated_events_change_nothing() -> None:
    world = World(make.node("n", cpu=1000))
    old = make.pod("a", make.spec(cpu=800))
    world.create(old)
    world.settle()
    new = world.pod("a")
    for event in (
        events.PodChanged(old),
        events.PodChanged(new),
        events.PodChanged(new),
        events.BindDone(new.uid),
        events.BindDone(new.uid, "late"),
        events.BindDone("unknown"),
        events.PodGone("unknown"),
        events.NodeGone("unknown"),
        events.GangGone("default", "unknown"),
        events.PlanDone("default", "unknown"),
        events.EvictDone("unknown", "late"),
        events.NodeChanged(world.nodes["n"]),
    ):
        world.inbox.append(event)
        world.settle()
        assert not any(isinstance(a, Bind) for a in world.log[2:])
    assert world.engine.view.pods[new.uid].node == "n"


def test_each_decision_is_timed_once() -> None:
    ticks = itertools.count()
    engine = Engine(profiles(), timer=lambda: float(next(ticks)))
    pods = [make.pod("a"), make.pod("b", make.spec(cpu=10**6)), *make.members("g", 2)]
    engine.learn([events.NodeChanged(make.node("n")), events.GangChanged(make.gang("g", 2))], 0.0)
    engine.step([events.PodChanged(p) for p in pods], 0.0)
    assert sorted(engine.decision_seconds) == [0.5, 0.5, 1.0, 1.0]


# --- nodes ----------------------------------------------------------------------------------------


def test_pods_on_a_node_that_goes_and_comes_back_are_counted_again() -> None:
    node = make.node("n", cpu=1000, gpus=2)
    world = World(node)
    world.create(make.pod("a", make.spec(cpu=600, whole=1)))
    world.settle()
    held = world.engine.view.pods[world.pod("a").uid].bookings
    world.remove("n")
    world.settle()
    world.put(node)
    world.create(make.pod("b", make.spec(cpu=600)), make.pod("c", make.spec(cpu=300, whole=1)))
    world.settle()
    assert world.where("a", "b", "c") == ["n", "", "n"]
    assert world.engine.view.pods[world.pod("a").uid].bookings == held
    world.check_room()


def test_pods_bound_to_a_node_that_is_not_known_yet_are_counted_when_it_comes() -> None:
    world = World()
    world.foreign(make.pod("theirs", make.spec(cpu=800)), "n")
    world.step()
    world.put(make.node("n", cpu=1000))
    world.create(make.pod("ours", make.spec(cpu=800)))
    world.settle()
    assert world.where("ours") == [""]


def test_a_node_that_goes_takes_no_pod_and_its_name_may_return_with_less() -> None:
    world = World(make.node("n", cpu=1000))
    world.remove("n")
    world.create(make.pod("a", make.spec(cpu=800)))
    world.settle()
    assert world.where("a") == [""]
    world.put(make.node("n", cpu=500))
    world.settle()
    assert world.where("a") == [""]


def test_higher_priority_goes_first_then_age_then_arrival() -> None:
    world = World(make.node("n", cpu=1000))
    world.create(
        make.pod("late", make.spec(cpu=400), created=5.0),
        make.pod("first", make.spec(cpu=400), created=1.0),
        make.pod("second", make.spec(cpu=400), created=1.0),
        make.pod("urgent", make.spec(cpu=400), created=9.0, priority=10),
    )
    world.settle()
    assert world.placed() == {"urgent", "first"}
    world.delete("urgent")
    world.settle()
    assert world.placed() == {"second", "first"}

"""The cluster over time: every instant counts, and who knew what when decides whose fault it is."""

from typing import Any

import pytest

from alnair.checker.over_time.live_check import Watching
from alnair.checker.registry import WATCH_RULES
from kit.checker.objects import Manifest, assignment, container, group, node, part, pod

FOREIGN = "default-scheduler"


class World:
    """A Watching with a node of 4 cores, and the seconds that pass."""

    def __init__(self, *start: Manifest, **options: Any) -> None:
        self.watching = Watching(**options)
        self.watching.nodes([node(gpus=2)], [], 0.0)
        self.watching.pods(list(start), [], 0.0)
        self.now = 10.0

    def wait(self, seconds: float) -> None:
        """Let time pass, with ticks."""
        for _ in range(int(seconds * 10)):
            self.now += 0.1
            self.watching.tick(self.now)

    def see(
        self, *manifests: Manifest, kind: str = "MODIFIED", earliest: float | None = None
    ) -> None:
        """Changes of pods arrive."""
        self.watching.pods(None, [(kind, m) for m in manifests], self.now, earliest)

    def rules(self) -> list[str]:
        """Finish and tell which rules were broken."""
        self.watching.finish(self.now)
        return sorted(violation.rule for violation in self.watching.violations)


def cores(name: str, cpu: object, **changes: Any) -> Manifest:
    return pod(name, container(cpu=cpu), **changes)


def test_a_clean_life_of_a_pod_is_clean() -> None:
    world = World()
    world.see(cores("a", 4, on=""), kind="ADDED")
    world.see(cores("a", 4))
    world.see(cores("a", 4, phase="Succeeded"))
    world.see(cores("b", 4))
    world.see(cores("a", 4, phase="Succeeded"), kind="DELETED")
    assert world.watching.counts() == (1, 1, 1)
    assert world.rules() == []


def test_an_over_commit_of_ours_counts_however_short_it_was() -> None:
    world = World()
    world.see(cores("a", 3), cores("b", 2))
    world.see(cores("b", 2), kind="DELETED")
    world.wait(3)
    assert world.rules() == ["node-capacity"]


def test_one_that_was_there_at_the_start_counts() -> None:
    assert World(cores("a", 3), cores("b", 2)).rules() == ["node-capacity"]


def test_every_violation_is_told_once() -> None:
    world = World()
    world.see(cores("a", 3), cores("b", 2))
    world.wait(8)
    world.see(cores("c", 2))
    world.wait(8)
    assert world.rules() == ["node-capacity"]


def test_status_changes_of_a_pod_do_not_count_twice() -> None:
    world = World()
    for phase in ("Pending", "Running", "Running"):
        world.see(cores("a", 4, phase=phase))
    assert world.rules() == []


@pytest.mark.parametrize(("visible", "broken"), [(0.49, []), (0.5, ["node-capacity"])])
def test_we_are_to_blame_if_the_foreign_binding_was_visible_for_half_a_second(
    visible: float, broken: list[str]
) -> None:
    world = World()
    world.see(cores("foreign", 3, scheduler=FOREIGN))
    world.now += visible
    world.see(cores("ours", 2))
    world.see(cores("ours", 2), kind="DELETED")
    world.wait(9)
    assert world.rules() == broken


@pytest.mark.parametrize(("visible", "broken"), [(1.1, []), (1.5, ["node-capacity"])])
def test_a_binding_that_the_server_held_up_may_have_been_sent_before_the_foreign_one_was_seen(
    visible: float, broken: list[str]
) -> None:
    """A store that stood still for 0.8 s was once taken for a binding made knowingly."""
    world = World()
    world.see(cores("foreign", 3, scheduler=FOREIGN))
    world.now += visible
    world.watching.requests.sent(world.now - 0.7)
    world.see(cores("ours", 2))  # written, and seen, while the server holds up requests
    world.watching.requests.answered(world.now)
    world.see(cores("ours", 2), kind="DELETED")
    world.wait(9)
    assert world.rules() == broken


def test_requests_that_took_long_before_or_later_excuse_nothing() -> None:
    world = World()
    world.watching.requests.sent(world.now - 5)
    world.watching.requests.answered(world.now)
    world.see(cores("foreign", 3, scheduler=FOREIGN))
    world.now += 0.6
    world.see(cores("ours", 2))
    world.see(cores("ours", 2), kind="DELETED")
    world.watching.requests.sent(world.now)
    world.wait(5)
    world.watching.requests.answered(world.now)
    assert world.rules() == ["node-capacity"]


def test_we_are_not_to_blame_if_the_foreign_binding_came_after_ours() -> None:
    world = World()
    world.see(cores("ours", 2))
    world.wait(3)
    world.see(cores("foreign", 3, scheduler=FOREIGN))
    world.wait(4)
    world.see(cores("ours", 2), kind="DELETED")
    world.wait(9)
    assert world.rules() == []


@pytest.mark.parametrize(("seconds", "broken"), [(4.8, []), (5.2, ["node-capacity"])])
def test_an_over_commit_that_lasts_is_ours_however_it_came(
    seconds: float, broken: list[str]
) -> None:
    world = World()
    world.see(cores("ours", 2), cores("foreign", 3, scheduler=FOREIGN))
    world.wait(seconds)
    world.see(cores("ours", 2), kind="DELETED")
    assert world.rules() == broken


def test_our_pod_on_its_way_out_has_cleared_it() -> None:
    world = World()
    world.see(cores("ours", 2), cores("foreign", 3, scheduler=FOREIGN))
    world.wait(4)
    world.see(cores("ours", 2, deleting=True))
    world.wait(30)
    assert world.rules() == []


def test_a_foreign_pod_from_before_the_watch_was_visible() -> None:
    world = World(cores("foreign", 3, scheduler=FOREIGN))
    world.see(cores("ours", 2))
    assert world.rules() == ["node-capacity"]


def test_a_foreign_pod_may_have_come_just_before_the_watch_began() -> None:
    world = World(cores("foreign", 3, scheduler=FOREIGN))
    world.now = 0.03
    world.see(cores("a", 2))
    world.see(cores("a", 2), kind="DELETED")
    assert world.rules() == []


def test_data_that_waited_for_us_does_not_prove_that_ours_came_late() -> None:
    world = World()
    world.see(cores("foreign", 3, scheduler=FOREIGN))
    seen = world.now
    world.now += 2
    world.see(cores("ours", 2), earliest=seen)
    assert world.rules() == []


def test_a_foreign_pod_on_our_gpu_needs_a_gpu_that_is_left() -> None:
    world = World()
    for name, uuid in (("a", "n-0"), ("b", "n-1")):
        text = assignment(main=[part(uuid, 64, 1)])
        world.see(pod(name, container(mib=64, percent=1), assigned=text))
    assert world.rules() == []
    world.see(pod("f", container(whole=1), scheduler=FOREIGN))
    world.wait(6)
    assert world.rules() == ["gpu-count"]


def test_a_node_that_arrives_after_the_binding_is_no_violation() -> None:
    world = World()
    world.see(cores("a", 1, on="new"))
    world.wait(1)
    world.watching.nodes(None, [("ADDED", node("new"))], world.now)
    world.wait(3)
    assert world.rules() == []


def test_a_node_that_never_arrives_is_one() -> None:
    world = World()
    world.see(cores("a", 1, on="new"))
    world.wait(3)
    assert world.rules() == ["node-exists"]


def test_a_node_that_is_deleted_later_is_no_violation() -> None:
    world = World()
    world.see(cores("a", 1))
    world.wait(3)
    world.watching.nodes([], [], world.now)
    world.wait(9)
    assert world.rules() == []


@pytest.mark.parametrize(("before", "broken"), [(0.3, []), (0.7, ["node-selector"])])
def test_the_scheduler_may_have_decided_on_the_node_as_it_just_was(
    before: float, broken: list[str]
) -> None:
    world = World()
    world.watching.nodes(None, [("MODIFIED", node(gpus=2, labels={"zone": "b"}))], world.now)
    world.now += before
    world.see(pod(spec={"nodeSelector": {"zone": "a"}}))
    world.wait(3)
    assert world.rules() == broken


def test_a_change_of_the_node_may_arrive_after_the_binding_that_it_allowed() -> None:
    world = World()
    world.see(pod(spec={"nodeSelector": {"zone": "b"}}), cores("big", 7))
    world.wait(1)
    changed = node(gpus=2, labels={"zone": "b"}, allocatable={"cpu": "8"})
    world.watching.nodes(None, [("MODIFIED", changed)], world.now)
    world.wait(3)
    assert world.rules() == []


def test_labels_of_a_node_that_change_later_are_no_violation() -> None:
    world = World()
    world.see(pod(spec={"nodeSelector": {"zone": "a"}}))
    world.wait(5)
    world.watching.nodes(None, [("MODIFIED", node(gpus=2, labels={"zone": "b"}))], world.now)
    world.see(pod(spec={"nodeSelector": {"zone": "a"}}, deleting=True))
    world.wait(5)
    assert world.rules() == []


def test_a_pod_that_moves_is_bound_twice() -> None:
    world = World()
    world.watching.nodes(None, [("ADDED", node("m"))], world.now)
    world.see(cores("a", 1, uid="u"), cores("a", 1, on="m", uid="u"))
    assert world.rules() == ["bound-once"]


def test_another_pod_of_the_same_name_is_another_pod() -> None:
    world = World()
    world.watching.nodes(None, [("ADDED", node("m"))], world.now)
    world.see(cores("a", 1, uid="u"))
    world.see(cores("a", 1, uid="u"), kind="DELETED")
    world.see(cores("a", 1, uid="v", on="m"))
    assert world.rules() == []


def test_a_list_after_a_break_is_one_moment() -> None:
    world = World()
    world.see(cores("a", 3), cores("x", 1))
    world.watching.pods([cores("b", 3), cores("x", 1)], [], world.now + 5)
    assert world.watching.counts() == (1, 2, 2)
    assert world.rules() == []


def test_what_was_bound_in_a_break_is_judged_by_the_time_before_it() -> None:
    world = World()
    world.see(cores("foreign", 3, scheduler=FOREIGN))
    last = world.now + 0.4
    world.now += 4
    both = [cores("foreign", 3, scheduler=FOREIGN), cores("ours", 2)]
    world.watching.pods(both, [], world.now, last)
    assert world.rules() == []


def test_a_lost_pod_is_told_only_if_pods_are_expected() -> None:
    for expected, broken in ((None, []), (0, ["pod-lost"]), (1, ["pod-lost", "pods-expected"])):
        world = World(expected=expected)
        world.see(cores("a", 1))
        world.see(cores("a", 1), kind="DELETED")
        assert world.rules() == broken


def test_a_pod_that_was_asked_to_go_is_not_lost() -> None:
    world = World(expected=0)
    world.see(cores("a", 1), cores("a", 1, deleting=True))
    world.see(cores("a", 1, deleting=True), kind="DELETED")
    assert world.rules() == []


def test_pods_of_other_namespaces_count_but_are_not_reported() -> None:
    world = World(namespaces=frozenset({"d"}))
    world.see(cores("a", 1, namespace="other", on="nowhere"))
    world.see(cores("b", 3, namespace="other"), cores("c", 2, namespace="other"))
    assert world.watching.counts() == (1, 0, 0)
    assert world.rules() == []


def member(name: str, on: str, **changes: Any) -> Manifest:
    return pod(name, on=on, labels={"scheduling.x-k8s.io/pod-group": "g"}, **changes)


class Gang(World):
    """A world with a gang of two."""

    def __init__(self, *start: Manifest) -> None:
        super().__init__(*start)
        self.watching.gangs.take("x", [group(2)], [], 0.0)


@pytest.mark.parametrize(("seconds", "broken"), [(4.8, []), (5.2, ["gang-whole"])])
def test_a_gang_may_be_partial_for_the_time_of_a_commit(seconds: float, broken: list[str]) -> None:
    world = Gang()
    world.see(member("a", "n"), member("b", ""))
    world.wait(seconds)
    world.see(member("b", "n"))
    world.wait(20)
    assert world.rules() == broken


def test_a_gang_that_was_whole_and_loses_a_pod_was_not_placed_in_part() -> None:
    world = Gang()
    world.see(member("a", "n"), member("b", "n"))
    world.see(member("b", "n"), kind="DELETED")
    world.wait(20)
    assert world.rules() == []


def test_but_a_gang_that_starts_anew_has_to_be_whole_again() -> None:
    world = Gang()
    world.see(member("a", "n"), member("b", "n"))
    for name in ("a", "b"):
        world.see(member(name, "n"), kind="DELETED")
    world.see(member("c", "n"), member("d", ""))
    world.wait(20)
    assert world.rules() == ["gang-whole"]


def test_a_gang_that_is_deleted_is_none() -> None:
    world = Gang()
    world.see(member("a", "n"))
    world.watching.gangs.take("x", None, [("DELETED", group(2))], world.now)
    world.wait(20)
    assert world.rules() == []


def test_the_watch_rules_are_those_that_are_tested_here() -> None:
    elsewhere = {"pod-affinity", "quota-max", "preemption-priority", "gang-minimum"}
    assert set(WATCH_RULES) == {"bound-once", "pod-lost", "pods-expected"} | elsewhere

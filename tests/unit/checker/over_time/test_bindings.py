"""Rules that need the order of events: neighbours, quotas and preemption."""

from typing import Any

import pytest

from kit.checker.objects import Manifest, container, node, pod
from kit.checker.worlds import A, apart

from .test_live_check import FOREIGN, World


class Racks(World):
    """Nodes n, in rack r, and m, in rack s."""

    def __init__(self, *start: Manifest, **options: Any) -> None:
        super().__init__(*start, **options)
        self.nodes("r", "s")
        self.wait(10)

    def nodes(self, *racks: str) -> None:
        """Label the nodes."""
        changes = [
            ("MODIFIED", node(name, labels={"rack": rack} if rack else {}))
            for name, rack in zip("nm", racks, strict=True)
        ]
        self.watching.nodes(None, changes, self.now)

    def bind(self, make: Any, name: str, on: str = "n", **changes: Any) -> None:
        """Let a pod be created, and bound a moment later."""
        self.see(make(name, on="", **changes), kind="ADDED")
        self.now += 0.1
        self.see(make(name, on=on, **changes))


def near(name: str, *, namespaces: Manifest | None = None, **changes: Any) -> Manifest:
    """A pod that wants to be in a rack with pods with app=a."""
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": A}}
    term |= {} if namespaces is None else {"namespaceSelector": namespaces}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return pod(name, spec={"affinity": {"podAffinity": required}}, **changes)


def of_priority(name: str, priority: int, **changes: Any) -> Manifest:
    return pod(name, spec={"priority": priority}, **changes)


def preempted(name: str, priority: int, by: str = "alnair-scheduler", **changes: Any) -> Manifest:
    """A pod on node n that is made to leave."""
    made = of_priority(name, priority, deleting=True, **changes)
    made["status"]["conditions"] = [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{by}: preempting to accommodate a higher priority pod",
        }
    ]
    return made


# --- anti-affinity ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["holder first", "holder last"])
def test_anti_affinity_is_broken_by_the_later_binding(order: str) -> None:
    world = Racks()
    makers = [(apart, "a"), (pod, "b")]
    for make, name in makers if order == "holder first" else reversed(makers):
        world.bind(make, name, labels=A if name == "b" else {})
    assert world.rules() == ["pod-anti-affinity"]


def test_anti_affinity_regards_other_schedulers_pods_that_were_there() -> None:
    world = Racks(pod("b", labels=A, scheduler=FOREIGN))
    world.bind(apart, "a")
    assert world.rules() == ["pod-anti-affinity"]


def test_but_not_those_that_came_later_or_just_before() -> None:
    for first in ("ours", "theirs"):
        world = Racks()
        if first == "ours":
            world.bind(apart, "a")
        world.bind(pod, "b", labels=A, scheduler=FOREIGN)
        if first == "theirs":
            world.now += 1
            world.bind(apart, "a")
        world.wait(20)
        assert world.rules() == []


def test_labels_that_change_after_the_binding_break_no_anti_affinity() -> None:
    world = Racks()
    world.bind(apart, "a")
    world.bind(pod, "b")
    world.wait(20)
    world.see(pod("b", labels=A))
    world.nodes("t", "t")
    world.wait(20)
    assert world.rules() == []


def test_a_label_that_was_just_changed_may_not_have_been_known() -> None:
    world = Racks()
    world.bind(pod, "b")
    world.wait(20)
    world.see(pod("b", labels=A))
    world.bind(apart, "a")
    assert world.rules() == []


def test_a_pod_that_has_left_is_nobodys_neighbour() -> None:
    world = Racks()
    world.bind(pod, "b", labels=A)
    world.see(pod("b", labels=A), kind="DELETED")
    world.bind(apart, "a")
    assert world.rules() == []


# --- affinity -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("on", "broken"), [("n", []), ("m", ["pod-affinity"])])
def test_affinity_needs_a_pod_in_the_domain(on: str, broken: list[str]) -> None:
    world = Racks(pod("a", labels=A))
    world.bind(near, "p", on)
    world.wait(10)
    assert world.rules() == broken


def test_that_pod_may_leave_later_or_have_left_just_now() -> None:
    for left in ("before", "after"):
        world = Racks(pod("a", labels=A))
        if left == "before":
            world.see(pod("a", labels=A), kind="DELETED")
        world.bind(near, "p")
        if left == "after":
            world.see(pod("a", labels=A), kind="DELETED")
        world.wait(10)
        assert world.rules() == []


def test_that_pod_may_be_of_the_same_gang_and_be_bound_after() -> None:
    world = Racks()
    world.bind(near, "p")
    world.wait(4)
    world.bind(pod, "a", labels=A)
    world.wait(10)
    assert world.rules() == []


def test_the_first_that_wants_its_like_may_go_anywhere_and_the_second_to_it() -> None:
    for second, broken in (("n", []), ("m", ["pod-affinity"])):
        world = Racks()
        world.bind(near, "p", labels=A)
        world.wait(10)
        world.bind(near, "q", second, labels=A)
        world.wait(10)
        assert world.rules() == broken


def test_the_first_needs_the_label_of_the_node_all_the_same() -> None:
    world = Racks()
    world.nodes("", "s")
    world.wait(10)
    world.bind(near, "p", labels=A)
    world.wait(10)
    assert world.rules() == ["pod-affinity"]


def test_terms_about_chosen_namespaces_are_not_judged() -> None:
    world = Racks()
    world.bind(near, "p", namespaces={"matchLabels": A})
    world.wait(10)
    assert world.rules() == []


# --- quotas -------------------------------------------------------------------------------------


def quota(cpu: object, name: str = "q") -> Manifest:
    return {"metadata": {"namespace": "d", "name": name}, "spec": {"max": {"cpu": cpu}}}


class Quota(Racks):
    """The namespace d may use two cores, for long."""

    def __init__(self, *start: Manifest, **options: Any) -> None:
        super().__init__(*start, **options)
        self.limit(2)
        self.wait(10)

    def limit(self, cpu: object) -> None:
        """Change the quota."""
        self.watching.quotas.take(None, [("MODIFIED", quota(cpu))], self.now)


def cores(name: str, cpu: object, **changes: Any) -> Manifest:
    return pod(name, container(cpu=cpu), **changes)


@pytest.mark.parametrize(("cpu", "broken"), [("1", []), ("1001m", ["quota-max"])])
def test_bindings_stay_within_max(cpu: str, broken: list[str]) -> None:
    world = Quota()
    world.bind(cores, "a", cpu=1)
    world.bind(cores, "b", cpu=cpu)
    world.bind(cores, "else", cpu=2, namespace="other", on="m")
    assert world.rules() == broken


def test_a_quota_that_is_lowered_leaves_what_is_bound_and_binds_what_comes() -> None:
    world = Quota()
    world.bind(cores, "a", cpu=2)
    world.limit(1)
    world.wait(10)
    assert not world.watching.violations
    world.bind(cores, "none", cpu=0)
    world.bind(cores, "b", cpu="100m")
    assert world.rules() == ["quota-max"]


@pytest.mark.parametrize("before", [True, False])
def test_a_binding_may_have_been_decided_on_before_a_change_or_after_one(before: bool) -> None:
    world = Quota()
    if before:
        world.limit(1)
        world.now += 1
    world.bind(cores, "a", cpu=2 if before else 3)
    if not before:
        world.limit(3)
    world.wait(10)
    assert world.rules() == []


def test_a_quota_that_is_gone_or_unreadable_limits_nothing() -> None:
    for gone in (True, False):
        world = Quota()
        if gone:
            world.watching.quotas.take([], [], world.now)
        else:
            world.limit("two")
        world.wait(10)
        world.bind(cores, "a", cpu=3)
        assert world.rules() == []


def test_of_several_quotas_the_strictest_holds() -> None:
    world = Quota()
    world.watching.quotas.take(None, [("ADDED", quota(1, "r"))], world.now)
    world.wait(10)
    world.bind(cores, "a", cpu=2)
    assert world.rules() == ["quota-max"]


def test_pods_that_left_or_are_of_others_use_no_quota() -> None:
    world = Quota()
    world.bind(cores, "a", cpu=2)
    world.see(cores("a", 2, deleting=True))
    world.bind(cores, "f", cpu=1, scheduler=FOREIGN, on="m")
    world.bind(cores, "b", cpu=2)
    assert world.rules() == []


# --- preemption ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("priority", "broken"), [(6, []), (5, ["preemption-priority"])])
def test_only_pods_of_higher_priority_take_the_room_of_others(
    priority: int, broken: list[str]
) -> None:
    world = Racks(of_priority("victim", 5))
    world.see(of_priority("p", priority, on=""), kind="ADDED")
    world.see(preempted("victim", 5))
    world.see(preempted("victim", 5), kind="DELETED")
    world.see(of_priority("p", priority))
    world.wait(70)
    assert world.rules() == broken


def test_who_preempted_may_have_found_another_place_and_another_have_come() -> None:
    world = Racks(of_priority("victim", 5))
    world.see(of_priority("high", 9, on=""), of_priority("low", 1, on=""), kind="ADDED")
    world.see(preempted("victim", 5))
    world.see(of_priority("high", 9, on="m"), of_priority("low", 1, on="n"))
    world.wait(70)
    assert world.rules() == []


@pytest.mark.parametrize("after", [50, 65])
def test_who_comes_much_later_came_for_other_reasons(after: int) -> None:
    world = Racks(of_priority("victim", 5))
    world.see(preempted("victim", 5))
    world.wait(after)
    world.bind(of_priority, "p", priority=5)
    assert world.rules() == (["preemption-priority"] if after < 60 else [])


def test_a_gang_counts_as_the_least_of_its_pods() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    start = [of_priority("a", 9, labels=labels), of_priority("b", 1, on="m", labels=labels)]
    world = Racks(*start)
    world.see(of_priority("p", 5, on=""), kind="ADDED")
    world.see(preempted("a", 9, labels=labels))
    world.see(of_priority("p", 5))
    world.wait(70)
    assert world.rules() == []


@pytest.mark.parametrize("why", ["other scheduler", "idle", "quota", "not ours"])
def test_other_reasons_to_leave_are_not_judged(why: str) -> None:
    changes: dict[str, Any] = {}
    if why == "idle":
        changes["annotations"] = {"ai.centaurus.io/utilization": "{}"}
    if why == "not ours":
        changes["scheduler"] = FOREIGN
    world = Racks(of_priority("victim", 5, **changes))
    if why == "quota":
        world.watching.quotas.take([quota(100)], [], world.now)
    by = FOREIGN if why == "other scheduler" else "alnair-scheduler"
    world.see(preempted("victim", 5, by, **changes))
    world.bind(of_priority, "p", priority=5)
    world.wait(70)
    assert world.rules() == []

"""What a PodGroup's status says, given its pods."""

from collections.abc import Sequence

import msgspec
import pytest

from alnair.kube.pod_groups.group_members import MemberWire, project_member
from alnair.model.api_types import Condition, PodGroupStatus
from alnair.scheduler.gangs.gang_refusal import EVICTING, WAITING_FOR_VICTIMS, too_few, untried
from alnair.scheduler.gangs.pod_group_status import (
    Member,
    PodGroupState,
    group_events,
    group_status,
    native_conditions,
    was_placed,
)

NOW, LATER = "2026-11-21T12:00:00Z", "2026-11-21T12:05:00Z"


def members(**counts: int) -> list[Member]:
    """Pods by how they are: waiting, bound, running, succeeded, failed, unknown."""
    return [
        Member(
            f"{kind}-{i}",
            "Pending" if kind in ("waiting", "bound") else kind.capitalize(),
            kind != "waiting",
            scheduler="alnair-scheduler",
        )
        for kind, number in counts.items()
        for i in range(number)
    ]


def phase(minimum: int, *, legacy: bool = False, **counts: int) -> str | None:
    return group_status(
        PodGroupState("ns", "g", minimum, legacy=legacy), members(**counts), NOW
    ).phase


def condition(status: PodGroupStatus, kind: str) -> Condition:
    return next(c for c in status.conditions or () if c.type == kind)


@pytest.mark.parametrize(
    ("minimum", "counts", "expected"),
    [
        (3, {}, "Pending"),
        (3, {"waiting": 2}, "Pending"),
        (3, {"waiting": 3}, "Scheduling"),
        (3, {"waiting": 1, "bound": 2}, "Scheduling"),
        (3, {"bound": 3}, "Scheduled"),
        (3, {"bound": 1, "running": 2}, "Scheduled"),
        (3, {"running": 3}, "Running"),
        (3, {"running": 3, "waiting": 2}, "Running"),
        (3, {"running": 2, "succeeded": 1}, "Running"),
        (3, {"running": 1, "unknown": 2}, "Unknown"),
        (3, {"succeeded": 3, "running": 1}, "Finished"),
        (3, {"running": 2, "failed": 1}, "Failed"),
        (3, {"running": 3, "failed": 1}, "Failed"),
        (3, {"running": 1, "failed": 1}, "Pending"),
        (3, {"running": 1, "failed": 1, "waiting": 1}, "Scheduling"),
        (1, {"failed": 1}, "Failed"),
    ],
)
def test_the_phase_follows_from_the_members(
    minimum: int, counts: dict[str, int], expected: str
) -> None:
    assert phase(minimum, **counts) == expected


def test_the_legacy_api_has_a_phase_for_enough_pods_none_of_which_has_a_node() -> None:
    assert phase(2, legacy=True, waiting=2) == "PreScheduling"
    assert phase(2, legacy=True, waiting=1, bound=1) == "Scheduling"


def test_counts_are_those_of_the_members() -> None:
    status = group_status(
        PodGroupState("ns", "g", 9),
        members(waiting=1, bound=2, running=3, succeeded=1, failed=1),
        NOW,
    )
    assert (status.scheduled, status.running, status.succeeded, status.failed) == (7, 3, 1, 1)


def test_a_second_look_changes_nothing() -> None:
    group = PodGroupState("ns", "g", 3)
    pods = members(waiting=2, running=1)
    first = group_status(group, pods, NOW)
    again = group_status(msgspec.structs.replace(group, status=first), pods, LATER)
    assert again == first


@pytest.mark.parametrize("counts", [{"succeeded": 2}, {"running": 1, "failed": 1}])
def test_what_became_of_a_group_stays_when_its_pods_are_cleaned_up(counts: dict[str, int]) -> None:
    group = PodGroupState("ns", "g", 2)
    status = group_status(group, members(**counts), NOW)
    assert group_status(msgspec.structs.replace(group, status=status), [], LATER) == status


def test_the_start_is_when_there_were_enough_pods_and_stays() -> None:
    group = PodGroupState("ns", "g", 2)
    assert group_status(group, members(waiting=1), NOW).schedule_start_time is None
    status = group_status(group, members(waiting=2), NOW)
    assert status.schedule_start_time == NOW
    group = msgspec.structs.replace(group, status=status)
    assert group_status(group, members(running=2), LATER).schedule_start_time == NOW


def test_a_condition_says_since_when_it_holds() -> None:
    group = PodGroupState("ns", "g", 3)
    status = group_status(group, members(waiting=1), NOW)
    assert condition(status, "Scheduled").reason == "NotEnoughPods"
    group = msgspec.structs.replace(group, status=status)
    refused = [*members(waiting=2), Member("x", "Pending", False, refusal="0/1 nodes")]
    status = group_status(group, refused, LATER)
    assert condition(status, "Scheduled") == Condition(
        "Scheduled", "False", "Unschedulable", "0/1 nodes", LATER
    )
    group = msgspec.structs.replace(group, status=status)
    status = group_status(group, members(bound=3), LATER)
    assert condition(status, "Scheduled").last_transition_time == LATER


def test_a_failed_member_fails_the_group_with_a_condition_and_one_warning() -> None:
    group = PodGroupState("ns", "g", 3)
    status = group_status(group, members(running=2, failed=1), NOW)
    found = condition(status, "Failed")
    assert (found.status, found.reason) == ("True", "MemberFailed")
    assert found.message == "1 of 3 pods failed: failed-0"
    (written,) = group_events(group, status)
    assert written.warning
    assert written.reason == "MemberFailed"
    assert not group_events(msgspec.structs.replace(group, status=status), status)


def test_a_message_names_a_few_failed_members() -> None:
    status = group_status(PodGroupState("ns", "g", 3), members(failed=5), NOW)
    assert condition(status, "Failed").message == (
        "5 of 5 pods failed: failed-0, failed-1, failed-2 and 2 more"
    )


def test_owners_are_named_with_their_namespace() -> None:
    pods = [
        Member("a", "Pending", False, ("job",)),
        Member("b", "Pending", False, ("set",)),
        Member("c", "Pending", False, ("job",)),
    ]
    assert group_status(PodGroupState("ns", "g", 3), pods, NOW).occupied_by == "ns/job,ns/set"


def test_a_native_group_once_scheduled_stays_so() -> None:
    kind = "PodGroupScheduled"
    group = PodGroupState("ns", "g", 2)
    waiting, bound = members(waiting=2), members(bound=2)
    first = native_conditions(kind, [], group_status(group, waiting, NOW), waiting)
    assert [(c.status, c.reason) for c in first] == [("False", "Unschedulable")]
    second = native_conditions(kind, first, group_status(group, bound, LATER), bound)
    assert second == [Condition(kind, "True", "Scheduled", "at least 2 pods have a node", LATER)]
    assert native_conditions(kind, second, group_status(group, waiting, LATER), waiting) == second


def test_a_native_group_of_other_schedulers_is_left_alone() -> None:
    pods = [Member("a", "Running", True, scheduler="default-scheduler")]
    status = group_status(PodGroupState("ns", "g", 1), pods, NOW)
    assert native_conditions("PodGroupScheduled", [], status, pods) == []


# --- new members of a group that failed ----------------------------------------------------------


def at(minute: int, second: int = 0) -> str:
    return f"2026-11-21T12:{minute:02}:{second:02}Z"


def pod(name: str, phase: str, created: str, ended: str = "") -> Member:
    return Member(name, phase, phase != "Pending", created=created, ended=ended)


A, B = pod("a", "Running", at(0)), pod("b", "Running", at(0))
LOST = pod("c", "Failed", at(0), ended=at(3))
NEW = pod("d", "Running", at(4))


def next_status(
    before: PodGroupStatus, pods: Sequence[Member], now: str = LATER, minimum: int = 3
) -> PodGroupStatus:
    """The status that follows; a second look at the same must change nothing."""
    status = group_status(PodGroupState("ns", "g", minimum, before), pods, now)
    assert group_status(PodGroupState("ns", "g", minimum, status), pods, at(59)) == status
    return status


FAILED = next_status(PodGroupStatus(), [A, B, LOST], at(3, 1))


@pytest.mark.parametrize("kept", [[LOST], []], ids=["the failed pod is kept", "it is deleted"])
def test_a_failed_group_whose_owner_makes_a_new_member_goes_on(kept: list[Member]) -> None:
    assert FAILED.phase == "Failed"
    waits = next_status(FAILED, [A, B, *kept, pod("d", "Pending", at(4))])
    assert waits.phase == "Scheduling"
    assert [c.type for c in waits.conditions or ()] == ["Scheduled"]
    assert waits.failed == len(kept)
    runs = next_status(waits, [A, B, *kept, NEW])
    assert runs.phase == "Running"
    again = next_status(runs, [A, msgspec.structs.replace(LOST, name="b", ended=at(5)), *kept, NEW])
    assert again.phase == "Failed", "one that fails after that fails the group again"


def test_a_group_that_is_made_anew_as_a_whole_goes_on() -> None:
    dead = [pod(n, "Failed", at(0), ended=at(2)) for n in "abc"]
    failed = next_status(PodGroupStatus(), dead)
    assert failed.phase == "Failed"
    some = next_status(failed, [*dead, pod("d", "Pending", at(3))])
    assert (some.phase, condition(some, "Scheduled").reason) == ("Pending", "NotEnoughPods")
    new = [pod(n, "Succeeded", at(3)) for n in "def"]
    assert next_status(some, [*dead, *new]).phase == "Finished"


def test_a_new_member_within_the_second_of_the_failure_is_told_from_those_of_before() -> None:
    lost = msgspec.structs.replace(LOST, ended=at(0))
    assert next_status(PodGroupStatus(), [A, B, lost]).phase == "Failed", (
        "all were made in that second"
    )
    assert (
        next_status(PodGroupStatus(), [A, B, lost, pod("d", "Pending", at(0))]).phase
        == "Scheduling"
    )


def test_a_new_member_that_was_made_before_we_saw_the_failure_counts() -> None:
    late = next_status(PodGroupStatus(), [A, B, LOST], at(9))
    assert next_status(late, [A, B, pod("d", "Pending", at(4))]).phase == "Scheduling"


def test_a_failed_group_that_is_only_cleaned_up_stays_so() -> None:
    for left in ([A, B], [A], []):
        assert next_status(FAILED, left) == FAILED


def test_where_conditions_are_not_kept_a_whole_group_is_a_new_one() -> None:
    bare = PodGroupStatus(phase="Failed")
    assert next_status(bare, [A, B]) == bare
    assert next_status(bare, [A, B, pod("d", "Running", at(4))]).phase == "Running"


def test_a_finished_group_stays_so_whatever_comes() -> None:
    done = next_status(PodGroupStatus(), [pod(n, "Succeeded", at(0)) for n in "abc"])
    assert next_status(done, [pod("d", "Pending", at(9))]) == done


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        ({"phase": "Running", "conditions": [{"lastTransitionTime": at(1)}]}, ""),
        ({"phase": "Failed"}, ""),
        (
            {
                "phase": "Failed",
                "conditions": [{"type": "DisruptionTarget", "lastTransitionTime": at(7)}],
            },
            at(7),
        ),
        (
            {
                "phase": "Failed",
                "conditions": [{"type": "Ready", "lastTransitionTime": at(9)}],
                "initContainerStatuses": [{"state": {"terminated": {"finishedAt": at(2)}}}],
                "containerStatuses": [
                    {"state": {"terminated": {"finishedAt": at(5)}}},
                    {"state": {"waiting": {}}},
                    {},
                ],
            },
            at(5),
        ),
    ],
)
def test_a_failed_pod_ended_with_its_last_container(status: dict[str, object], ended: str) -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    metadata = {"name": "p", "labels": labels, "creationTimestamp": at(0)}
    wire = msgspec.convert({"metadata": metadata, "spec": {}, "status": status}, MemberWire)
    member = project_member(wire).member
    assert member is not None
    assert (member.created, member.ended) == (at(0), ended)


# --- elastic groups -------------------------------------------------------------------------------


def elastic(target: int = 3, least: int = 1, status: PodGroupStatus | None = None) -> PodGroupState:
    return PodGroupState("ns", "g", target, status or PodGroupStatus(), elastic_min=least)


def follow(group: PodGroupState, pods: Sequence[Member], now: str = NOW) -> PodGroupState:
    return msgspec.structs.replace(group, status=group_status(group, pods, now))


def test_an_elastic_group_needs_its_target_until_it_was_placed_and_then_its_minimum() -> None:
    group = follow(elastic(), members(bound=2, waiting=1))
    assert not was_placed(group.status)
    assert group.status.phase == "Scheduling"
    group = follow(group, members(bound=3))
    assert condition(group.status, "InitiallyScheduled").status == "True"
    for pods in (members(running=1, waiting=2), members(running=1), members(waiting=3), []):
        group = follow(group, pods, LATER)
        assert was_placed(group.status)
        assert condition(group.status, "InitiallyScheduled").last_transition_time == NOW
    group = follow(group, members(running=1, waiting=2), LATER)
    assert group.status.phase == "Running"
    assert condition(group.status, "Scheduled").status == "True"


def test_a_resource_that_keeps_no_conditions_tells_by_its_phase_that_it_was_placed() -> None:
    group = follow(elastic(), members(running=3))
    bare = msgspec.structs.replace(group.status, conditions=None)
    group = follow(msgspec.structs.replace(group, status=bare), members(running=1, waiting=2))
    assert group.status.phase == "Running"


def test_members_that_an_elastic_group_can_spare_do_not_fail_it() -> None:
    group = follow(elastic(least=2), members(running=3))
    group = follow(group, members(running=2, failed=1))
    assert group.status.phase == "Running"
    assert group.status.failed == 1
    group = follow(group, members(running=1, failed=2))
    assert group.status.phase == "Failed"
    made = [Member("new", "Running", True, created="2026-11-21T13:00:00Z")]
    group = follow(group, [*members(running=1, failed=2), *made])
    assert group.status.phase == "Running", "its owner has made new members"


def test_an_elastic_group_is_finished_when_no_member_runs_any_more() -> None:
    group = follow(elastic(), members(running=3))
    group = follow(group, members(running=2, succeeded=1))
    assert group.status.phase == "Running"
    assert follow(group, members(succeeded=2, failed=1)).status.phase == "Finished"


def test_other_groups_have_no_condition_about_having_been_placed() -> None:
    status = group_status(PodGroupState("ns", "g", 3), members(running=3), NOW)
    assert [c.type for c in status.conditions or ()] == ["Scheduled"]


# --- why it is not scheduled ----------------------------------------------------------------------


def refused(text: str, count: int = 4, bound: int = 0) -> list[Member]:
    said = [Member(f"w-{i}", "Pending", False, refusal=text) for i in range(count)]
    return [*members(bound=bound), *said]


def fit(room: int, needed: int) -> str:
    return too_few(("ns", "g"), room, needed, "for w-3: 0/3 nodes are available")


def test_a_group_that_was_tried_says_for_how_many_members_there_is_room() -> None:
    status = group_status(PodGroupState("ns", "g", 4), refused(fit(3, 4)), NOW)
    found = condition(status, "Scheduled")
    assert (found.status, found.reason) == ("False", "Unschedulable")
    assert status.fits == 3
    status = group_status(PodGroupState("ns", "g", 5), refused(fit(2, 3), bound=2), NOW)
    assert status.fits == 4


@pytest.mark.parametrize(
    "text",
    [
        "gang ns/g needs 4 pods and has 3: waiting for 1 more",
        "PodGroup ns/g does not exist: create it, or drop the pod's label",
        "PodGroup ns/g cannot be read: spec.minResources: x",
        fit(3, 5),
        untried(("ns", "g"), 2, "resource gap: its minResources want cpu 6 (free 5)"),
    ],
)
def test_what_the_scheduler_said_of_another_number_of_pods_does_not_count(text: str) -> None:
    status = group_status(PodGroupState("ns", "g", 4), refused(text), NOW)
    assert condition(status, "Scheduled").reason == "Waiting"
    assert status.fits is None


def test_a_gap_of_resources_is_unschedulable_without_a_figure() -> None:
    text = untried(("ns", "g"), 4, "resource gap: its minResources want cpu 6 (free 5)")
    status = group_status(PodGroupState("ns", "g", 4), refused(text), NOW)
    assert condition(status, "Scheduled").reason == "Unschedulable"
    assert status.fits is None


def test_while_others_leave_for_it_a_group_is_not_unschedulable() -> None:
    for more in (f"{EVICTING}2 pods to make room.", WAITING_FOR_VICTIMS):
        status = group_status(PodGroupState("ns", "g", 4), refused(fit(3, 4) + more), NOW)
        assert condition(status, "Scheduled").reason == "Preempting"
        assert status.fits is None


def test_the_time_of_unschedulable_is_since_when_so_many_cannot_be_placed() -> None:
    group = follow(PodGroupState("ns", "g", 4), members(waiting=3))
    assert condition(group.status, "Scheduled").last_transition_time == NOW
    group = follow(group, refused(fit(3, 4)), LATER)
    assert condition(group.status, "Scheduled").last_transition_time == LATER
    # Other numbers of nodes, or of members that fit, are no other verdict.
    group = follow(group, refused(fit(2, 4)), "2026-11-21T12:06:00Z")
    assert condition(group.status, "Scheduled").last_transition_time == LATER
    assert group.status.fits == 2
    # A smaller target is.
    smaller = msgspec.structs.replace(group, min_member=3)
    group = follow(smaller, refused(fit(2, 3), 3), "2026-11-21T12:07:00Z")
    assert condition(group.status, "Scheduled").last_transition_time == "2026-11-21T12:07:00Z"


def test_a_slow_image_pull_is_not_unschedulable() -> None:
    status = group_status(PodGroupState("ns", "g", 4), members(bound=4), NOW)
    assert condition(status, "Scheduled").status == "True"
    assert status.fits is None


@pytest.mark.parametrize(
    ("reason", "expected"), [("SchedulingGated", ""), ("Unschedulable", "why")]
)
def test_a_pod_that_is_gated_was_not_refused(reason: str, expected: str) -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": reason, "message": "why"}
    manifest = {
        "metadata": {"name": "p", "labels": {"scheduling.x-k8s.io/pod-group": "g"}},
        "spec": {},
        "status": {"phase": "Pending", "conditions": [said]},
    }
    found = project_member(msgspec.convert(manifest, MemberWire)).member
    assert found is not None
    assert found.refusal == expected

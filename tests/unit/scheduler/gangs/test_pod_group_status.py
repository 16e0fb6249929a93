"""What a PodGroup's status says, given its pods."""

import msgspec
import pytest

from alnair.model.api import Condition, PodGroupStatus
from alnair.scheduler.gangs.pod_group_status import (
    Group,
    Member,
    group_status,
    native_conditions,
    news,
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
    return group_status(Group("ns", "g", minimum, legacy=legacy), members(**counts), NOW).phase


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
        Group("ns", "g", 9), members(waiting=1, bound=2, running=3, succeeded=1, failed=1), NOW
    )
    assert (status.scheduled, status.running, status.succeeded, status.failed) == (7, 3, 1, 1)


def test_a_second_look_changes_nothing() -> None:
    group = Group("ns", "g", 3)
    pods = members(waiting=2, running=1)
    first = group_status(group, pods, NOW)
    again = group_status(msgspec.structs.replace(group, status=first), pods, LATER)
    assert again == first


@pytest.mark.parametrize("counts", [{"succeeded": 2}, {"running": 1, "failed": 1}])
def test_what_became_of_a_group_stays_when_its_pods_are_cleaned_up(counts: dict[str, int]) -> None:
    group = Group("ns", "g", 2)
    status = group_status(group, members(**counts), NOW)
    assert group_status(msgspec.structs.replace(group, status=status), [], LATER) == status


def test_the_start_is_when_there_were_enough_pods_and_stays() -> None:
    group = Group("ns", "g", 2)
    assert group_status(group, members(waiting=1), NOW).schedule_start_time is None
    status = group_status(group, members(waiting=2), NOW)
    assert status.schedule_start_time == NOW
    group = msgspec.structs.replace(group, status=status)
    assert group_status(group, members(running=2), LATER).schedule_start_time == NOW


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    group = Group("ns", "g", 3)
    status = group_status(group, members(waiting=1), NOW)
    assert condition(status, "Scheduled").reason == "NotEnoughPods"
    group = msgspec.structs.replace(group, status=status)
    refused = [*members(waiting=2), Member("x", "Pending", False, refusal="0/1 nodes")]
    status = group_status(group, refused, LATER)
    assert condition(status, "Scheduled") == Condition(
        "Scheduled", "False", "Unschedulable", "0/1 nodes", NOW
    )
    group = msgspec.structs.replace(group, status=status)
    status = group_status(group, members(bound=3), LATER)
    assert condition(status, "Scheduled").last_transition_time == LATER


def test_a_failed_member_fails_the_group_with_a_condition_and_one_warning() -> None:
    group = Group("ns", "g", 3)
    status = group_status(group, members(running=2, failed=1), NOW)
    found = condition(status, "Failed")
    assert (found.status, found.reason) == ("True", "MemberFailed")
    assert found.message == "1 of 3 pods failed: failed-0"
    (told,) = news(group, status)
    assert told.warning
    assert told.reason == "MemberFailed"
    assert not news(msgspec.structs.replace(group, status=status), status)


def test_a_message_names_a_few_failed_members() -> None:
    status = group_status(Group("ns", "g", 3), members(failed=5), NOW)
    assert condition(status, "Failed").message == (
        "5 of 5 pods failed: failed-0, failed-1, failed-2 and 2 more"
    )


def test_owners_are_named_with_their_namespace() -> None:
    pods = [
        Member("a", "Pending", False, ("job",)),
        Member("b", "Pending", False, ("set",)),
        Member("c", "Pending", False, ("job",)),
    ]
    assert group_status(Group("ns", "g", 3), pods, NOW).occupied_by == "ns/job,ns/set"


def test_a_native_group_once_scheduled_stays_so() -> None:
    kind = "PodGroupScheduled"
    group = Group("ns", "g", 2)
    waiting, bound = members(waiting=2), members(bound=2)
    first = native_conditions(kind, [], group_status(group, waiting, NOW), waiting)
    assert [(c.status, c.reason) for c in first] == [("False", "Unschedulable")]
    second = native_conditions(kind, first, group_status(group, bound, LATER), bound)
    assert second == [Condition(kind, "True", "Scheduled", "at least 2 pods have a node", LATER)]
    assert native_conditions(kind, second, group_status(group, waiting, LATER), waiting) == second


def test_a_native_group_of_other_schedulers_is_left_alone() -> None:
    pods = [Member("a", "Running", True, scheduler="default-scheduler")]
    status = group_status(Group("ns", "g", 1), pods, NOW)
    assert native_conditions("PodGroupScheduled", [], status, pods) == []

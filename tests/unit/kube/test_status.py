"""Patches of a status: what is not true any more goes."""

from alnair.kube.status import replacing
from alnair.model.api_types import Condition, PodGroupStatus

WAITS = Condition("Scheduled", "False", "Unschedulable", "no room", "2026-11-24T10:00:00Z")
PLACED = Condition("Scheduled", "True", "EnoughScheduled", "all", "2026-11-24T10:00:01Z")


def test_a_field_that_is_not_true_any_more_is_removed_and_others_are_written() -> None:
    before = PodGroupStatus(phase="Scheduling", scheduled=0, conditions=[WAITS], fits=3)
    after = PodGroupStatus(phase="Scheduled", scheduled=4, conditions=[PLACED])
    patch = replacing(before, after)
    assert patch["fits"] is None
    assert patch["phase"] == "Scheduled"
    assert patch["scheduled"] == 4
    assert [one["status"] for one in patch["conditions"]] == ["True"]


def test_a_field_that_nobody_wrote_is_not_in_the_patch() -> None:
    assert replacing(PodGroupStatus(), PodGroupStatus(phase="Pending")) == {"phase": "Pending"}

"""What was applied of a job: not again while its news is on its way, at once when it has gone."""

import msgspec
import pytest

from alnair.elastic.desired import Child
from alnair.model import names
from alnair.model.api_types import Condition
from alnair.model.elastic_types import JobStatus, MigrationStatus
from alnair.processes.controller.elastic.applied import Applied, digest, noted
from alnair.processes.controller.paces import Paces

SERVICE = {"kind": "Service", "metadata": {"name": "s"}}
CHILD = Child("Service", "s")
PACES = Paces(status_pace=5.0, write_pace=1.0, group_pace=2.0)


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def applied(clock: Clock) -> Applied:
    """Of a service that was applied at 100 s."""
    made = Applied(paces=PACES, clock=clock)
    made.note(SERVICE)
    return made


@pytest.mark.parametrize(("seconds", "again"), [(101.5, False), (109.0, False), (110.0, True)])
def test_what_nobody_has_seen_yet_is_applied_again_only_after_a_while(
    applied: Applied, clock: Clock, seconds: float, again: bool
) -> None:
    clock.now = seconds
    applied.look([SERVICE], {CHILD})
    assert applied.differs(SERVICE) is again


def test_what_was_there_and_is_not_is_applied_at_once(applied: Applied) -> None:
    applied.look([SERVICE], set())
    assert not applied.differs(SERVICE)
    applied.look([SERVICE], {CHILD})
    assert applied.differs(SERVICE)
    assert applied.wait(SERVICE) == 0
    # And then its news is waited for again.
    applied.note(SERVICE)
    applied.look([SERVICE], {CHILD})
    assert not applied.differs(SERVICE)


# --- after another leader -------------------------------------------------------------------------


def test_what_another_leader_applied_is_not_applied_again_until_all_is(clock: Clock) -> None:
    applied = Applied(found={CHILD: digest(SERVICE)}, keys=True, clock=clock)
    assert not applied.differs(SERVICE)
    assert applied.differs({**SERVICE, "spec": {}})
    applied.renew()
    assert applied.differs(SERVICE)
    assert not applied.keys


def test_what_was_changed_while_nobody_led_is_applied_at_once(clock: Clock) -> None:
    applied = Applied(found={CHILD: digest(SERVICE)}, clock=clock)
    applied.look([SERVICE], {CHILD})
    assert applied.differs(SERVICE)
    assert applied.wait(SERVICE) == 0


def test_the_digest_is_on_the_object_and_goes_by_what_is_applied_alone() -> None:
    metadata = noted(SERVICE)["metadata"]
    assert metadata == {"name": "s", "annotations": {names.APPLIED: digest(SERVICE)}}
    assert SERVICE["metadata"] == {"name": "s"}, "the manifest itself is as it was"
    turned = {"metadata": {"name": "s"}, "kind": "Service"}
    assert digest(turned) == digest(SERVICE)


# --- how often ------------------------------------------------------------------------------------


def group(size: int) -> dict[str, object]:
    return {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": size}}


def test_a_group_is_resized_at_once_and_then_as_its_pace_is(clock: Clock) -> None:
    applied, written = Applied(paces=PACES, clock=clock), []
    for step in range(100):  # it is to have another size every tenth of a second
        clock.now = 100 + step / 10
        if not applied.wait(group(step)):
            applied.note(group(step))
            written.append(round(clock.now - 100, 1))
    assert written == [0.0, 0.1, 2.1, 4.1, 6.1, 8.1]


def test_over_what_somebody_else_changes_again_and_again_nobody_writes_without_end(
    clock: Clock,
) -> None:
    applied, written = Applied(paces=PACES, clock=clock), []
    for step in range(6000):  # ten minutes
        clock.now = 100 + step / 10
        applied.look([group(2)], set())
        applied.look([group(2)], {Child("PodGroup", "g")})  # it is another one again
        if applied.differs(group(2)) and not applied.wait(group(2)):
            applied.note(group(2))
            written.append(clock.now - 100)
    assert len(written) < 20
    assert written[2] < 3, "the first ones are put right soon"
    clock.now += 3600
    assert applied.wait(group(2)) == 0
    applied.note(group(2))
    clock.now += 2
    assert applied.wait(group(2)) == 0, "that was another quarrel"


def test_what_is_refused_is_not_asked_for_at_once(clock: Clock) -> None:
    applied = Applied(paces=PACES, clock=clock)
    assert applied.wait(SERVICE) == 0
    applied.note_refused(SERVICE)
    assert applied.differs(SERVICE)
    assert applied.wait(SERVICE) == 1.0


def status(phase: str, reason: str, workers: int, words: str = "") -> JobStatus:
    said = [Condition("Running", "True", reason, words, "2026-11-24T10:00:00Z")]
    return JobStatus(phase=phase, available_replicas=workers, conditions=said)


RUNS = status("Running", "LauncherRuns", 1)


def test_counts_wait_for_further_ones_and_how_a_job_ended_for_nothing(clock: Clock) -> None:
    applied = Applied(paces=PACES, clock=clock)
    assert applied.may_tell(JobStatus(), RUNS) == 0
    more = status("Running", "LauncherRuns", 2, "other words")
    assert applied.may_tell(RUNS, more) == 0, "the first change is told at once"
    clock.now += 0.5
    assert applied.may_tell(more, RUNS) == 4.5
    grows = status("Scaling", "LauncherRuns", 2)
    assert applied.may_tell(more, grows) == 0.5
    clock.now += 0.5
    assert applied.may_tell(more, grows) == 0
    assert applied.may_tell(grows, status("Succeeded", "TrainingCompleted", 0)) == 0


def test_a_new_job_tells_first_that_it_trains_or_what_keeps_it_back(clock: Clock) -> None:
    applied, nothing = Applied(paces=PACES, clock=clock), JobStatus()
    read = Condition("Created", "True", "JobRead", "", "")
    placed = Condition("Scheduled", "True", "EnoughPlaced", "", "")
    coming = JobStatus(phase="Scheduled", target_replicas=2, conditions=[read, placed])
    assert applied.may_tell(nothing, coming) == 1.0
    clock.now += 0.25
    assert applied.may_tell(nothing, coming) == 0.75
    assert applied.may_tell(nothing, RUNS) == 0
    without_room = msgspec.structs.replace(coming, target_replicas=0)
    assert applied.may_tell(nothing, without_room) == 0
    refused = [Condition("Created", "False", "QuotaExceeded", "", "")]
    assert applied.may_tell(nothing, msgspec.structs.replace(coming, conditions=refused)) == 0
    clock.now += 0.75
    assert applied.may_tell(nothing, coming) == 0


def test_that_a_migration_began_or_is_done_waits_for_nothing(clock: Clock) -> None:
    applied = Applied(paces=PACES, clock=clock)
    grows = status("Scaling", "LauncherRuns", 2)
    assert applied.may_tell(RUNS, grows) == 0
    assert applied.may_tell(grows, RUNS) == 1.0
    asked, waits, done = (
        msgspec.structs.replace(RUNS, migration=MigrationStatus(request="n1", **told))
        for told in ({}, {"message": "for a worker"}, {"done": True})
    )
    assert applied.may_tell(RUNS, asked) == 0
    assert applied.may_tell(asked, waits) == 1.0
    assert applied.may_tell(waits, done) == 0


def test_a_job_whose_pods_come_and_go_tells_so_at_its_pace(clock: Clock) -> None:
    applied, told, before = Applied(paces=PACES, clock=clock), 0, RUNS
    for step in range(600):  # a minute
        clock.now = 100 + step / 10
        now = msgspec.structs.replace(RUNS, available_replicas=step)
        if not applied.may_tell(before, now):
            told, before = told + 1, now
    assert told == 12


def test_each_thing_that_is_done_has_its_own_pace(clock: Clock) -> None:
    applied = Applied(paces=PACES, clock=clock)
    assert applied.may("delete", CHILD) == 0
    assert applied.may("delete", CHILD) == 1.0
    assert applied.may("create", CHILD) == 0
    assert applied.may("delete", Child("Job", "j")) == 0

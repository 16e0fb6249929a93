"""What a PodGroup's status shall say, given its pods: a pure function of what there is.

Phases and their rules are those of scheduler-plugins' PodGroup controller, and of the original
Alnair for the phases that only it has. A phase follows from the members alone, except that Finished
is final, and Failed until the owner makes new members. Then, and so long as failed pods of before
are kept (a Job keeps them), only what came after them counts. scheduler-plugins never leaves
Failed; Volcano, whose jobs restart, decides on the phase anew in every cycle.

    Pending ─▶ Scheduling ─▶ Scheduled ─▶ Running ─▶ Finished
       ▲ enough pods  enough have     enough run     └─▶ Failed ─┐
       │                a node                 (Unknown while a lost node hides how pods are)
       └──────────────────────── new members ────────────────────┘

An elastic group that was placed once goes on with its minimum: what it loses beyond that shrinks
it, and does not fail it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from alnair.model import names
from alnair.model.api_types import Condition, PodGroupStatus
from alnair.model.plurals import counted
from alnair.scheduler.gangs.gang_refusal import GangRefusal, read_refusal

PENDING: Final = "Pending"
#: The legacy API's word for Scheduling while no member has a node yet.
PRE_SCHEDULING: Final = "PreScheduling"
SCHEDULING: Final = "Scheduling"
SCHEDULED: Final = "Scheduled"
RUNNING: Final = "Running"
UNKNOWN: Final = "Unknown"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"

FINAL: Final = (FINISHED, FAILED)
#: Condition of an elastic group that was placed once; also what Kubernetes' own API calls it.
INITIALLY_SCHEDULED: Final = "InitiallyScheduled"
_PLACED_CONDITIONS: Final = (
    INITIALLY_SCHEDULED,
    "PodGroupInitiallyScheduled",
    "PodGroupScheduled",
)
#: Phases that only a group has which was placed; custom resources of others keep no conditions.
_PLACED_PHASES: Final = (SCHEDULED, RUNNING, UNKNOWN, FINISHED)
UNSCHEDULABLE: Final = "Unschedulable"
#: Characters of an RFC 3339 time down to its second.
_SECOND: Final = len("2026-01-01T00:00:00")
#: Members that a message names.
_NAMED: Final = 3


class Member(msgspec.Struct, frozen=True):
    """A pod of a group, as far as the group's status goes."""

    name: str
    #: Pending, Running, Succeeded, Failed or Unknown.
    phase: str
    #: It has a node.
    bound: bool
    #: Its owners, by name.
    owners: tuple[str, ...] = ()
    #: Why the scheduler could not place it, empty if it did not say.
    refusal: str = ""
    #: The scheduler that it asked for.
    scheduler: str = ""
    #: When it was made and, if it has failed, when it ended; RFC 3339 in UTC, empty if unknown.
    created: str = ""
    ended: str = ""


class PodGroupState(msgspec.Struct, frozen=True):
    """A PodGroup, with the status that it has."""

    namespace: str
    name: str
    min_member: int
    status: PodGroupStatus = PodGroupStatus()
    #: It is of the legacy API, which has a phase more.
    legacy: bool = False
    #: With how few members it goes on once it was placed; 0 = it is not elastic.
    elastic_min: int = 0

    @property
    def needed(self) -> int:
        """Members that it needs now."""
        if self.elastic_min and was_placed(self.status):
            return min(self.elastic_min, self.min_member)
        return self.min_member


class GroupEvent(msgspec.Struct, frozen=True):
    """A change of a group that its owner is told by an event."""

    reason: str
    message: str
    warning: bool = False


class Counts(msgspec.Struct, frozen=True):
    """How many members are how."""

    pods: int
    scheduled: int
    running: int
    succeeded: int
    failed: int
    unknown: int

    @property
    def started(self) -> int:
        """Members that run or did."""
        return self.running + self.succeeded

    @property
    def ended(self) -> int:
        """Members that will not run any more."""
        return self.succeeded + self.failed


def count(members: Iterable[Member]) -> Counts:
    """Count members by phase."""
    phases: dict[str, int] = {}
    pods = scheduled = 0
    for member in members:
        pods += 1
        scheduled += member.bound
        phases[member.phase] = phases.get(member.phase, 0) + 1
    return Counts(
        pods=pods,
        scheduled=scheduled,
        running=phases.get("Running", 0),
        succeeded=phases.get("Succeeded", 0),
        failed=phases.get("Failed", 0),
        unknown=phases.get("Unknown", 0),
    )


def was_placed(status: PodGroupStatus) -> bool:
    """Return whether the status says that all who must start together were placed once."""
    said = (c.status == "True" for c in status.conditions or () if c.type in _PLACED_CONDITIONS)
    return any(said) or status.phase in _PLACED_PHASES


def phase_of(group: PodGroupState, counts: Counts) -> str:
    """Return the phase that follows from the members."""
    minimum = group.needed
    if counts.failed and counts.failed + counts.started >= minimum:
        return FAILED
    if counts.succeeded >= minimum and not (group.elastic_min and counts.ended < counts.pods):
        return FINISHED
    if counts.started >= minimum:
        return RUNNING
    if counts.unknown and counts.unknown + counts.started >= minimum:
        return UNKNOWN
    if counts.pods < minimum:
        return PENDING
    if counts.scheduled >= minimum:
        return SCHEDULED
    return PRE_SCHEDULING if group.legacy and not counts.scheduled else SCHEDULING


def group_status(group: PodGroupState, members: Sequence[Member], now: str) -> PodGroupStatus:
    """Return the status that the group shall have; equal to the present one if nothing changed.

    Args:
        group: with its present status.
        members: its pods, all of its own namespace.
        now: RFC 3339.
    """
    old = group.status
    if old.phase == FINISHED or (old.phase == FAILED and not _begun_anew(group, members)):
        return old  # its pods may be cleaned up; what became of it stays written
    counts = count(members)
    noted = any(c.type == INITIALLY_SCHEDULED for c in old.conditions or ())
    is_placed = counts.scheduled >= group.min_member or was_placed(old)
    if group.elastic_min and is_placed and not noted:
        placed = _initially_scheduled(group, now)
        old = msgspec.structs.replace(old, conditions=[*(old.conditions or ()), placed])
        group = msgspec.structs.replace(group, status=old)
    current = _not_replaced(group, members)
    current_counts = count(current)
    phase = phase_of(group, current_counts)
    begun = old.schedule_start_time
    if begun is None and phase != PENDING:
        begun = now
    owners = sorted({f"{group.namespace}/{owner}" for m in members for owner in m.owners})
    return PodGroupStatus(
        phase=phase,
        occupied_by=",".join(owners) or old.occupied_by,
        scheduled=counts.scheduled,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        schedule_start_time=begun,
        conditions=_conditions(group, current, current_counts, phase, now),
        fits=_fits(group, current, current_counts),
    )


def group_events(group: PodGroupState, status: PodGroupStatus) -> tuple[GroupEvent, ...]:
    """Return what the owner is told when the group takes on this status."""
    if group.status.phase == status.phase:
        return ()
    conditions = {c.type: c for c in status.conditions or ()}
    if status.phase in FINAL:
        condition = conditions[status.phase]
        failed = status.phase == FAILED
        return (GroupEvent(condition.reason, condition.message, warning=failed),)
    if status.phase == RUNNING:
        return (GroupEvent("Running", f"at least {group.needed} pods of the group run"),)
    return ()


def only_counts(before: PodGroupStatus, status: PodGroupStatus) -> bool:
    """Whether nothing has changed but counts of members and words of conditions."""
    return _but_counts(before) == _but_counts(status)


def _but_counts(status: PodGroupStatus) -> PodGroupStatus:
    said = [msgspec.structs.replace(one, message="") for one in status.conditions or ()]
    return msgspec.structs.replace(
        status, scheduled=0, running=0, succeeded=0, failed=0, fits=None, conditions=said
    )


def native_conditions(
    kind: str, before: Sequence[Condition], status: PodGroupStatus, members: Iterable[Member]
) -> list[Condition]:
    """Return the conditions that a group of the API `scheduling.k8s.io` shall have.

    As Kubernetes has it, one that was scheduled once stays so. Groups whose pods are none of ours
    are the business of whoever schedules them.

    Args:
        kind: what the API's version calls the condition.
        before: the conditions that it has.
        status: what `group_status` says of it.
        members: its pods.
    """
    kept = [c for c in before if c.type != kind]
    old = next((c for c in before if c.type == kind), None)
    if (old and old.status == "True") or not any(m.scheduler in names.SCHEDULERS for m in members):
        return list(before)
    now = next(c for c in status.conditions or () if c.type == SCHEDULED)
    since = old.last_transition_time if old and old.status == now.status else None
    reason = SCHEDULED if now.status == "True" else "Unschedulable"
    when = since or now.last_transition_time
    return [*kept, Condition(kind, now.status, reason, now.message, when)]


def _begun_anew(group: PodGroupState, members: Iterable[Member]) -> bool:
    """Return whether the owner has made new members since the group failed."""
    since = next((c for c in group.status.conditions or () if c.type == FAILED), None)
    alive = [m for m in members if m.phase != "Failed"]
    if since is None:  # the cluster has scheduler-plugins' own CRD, which keeps no conditions
        return len(alive) >= group.needed
    return _after(since.last_transition_time, alive, group.needed)


def _not_replaced(group: PodGroupState, members: Sequence[Member]) -> list[Member]:
    """Return the members without failed ones since whose end the owner has made new ones.

    What an elastic group can spare it need not replace.
    """
    alive = [m for m in members if m.phase != "Failed"]
    if group.elastic_min and was_placed(group.status) and len(alive) >= group.needed:
        return alive
    return [
        m
        for m in members
        if m.phase != "Failed" or not m.ended or not _after(m.ended, alive, group.needed)
    ]


def _after(time: str, members: Sequence[Member], minimum: int) -> bool:
    """Return whether some of these members were made after a time.

    Times of objects are whole seconds. Within the same second, so many that the group is whole
    again tell that some are new.
    """
    newest, second = max((m.created[:_SECOND] for m in members), default=""), time[:_SECOND]
    return newest > second or (newest == second and len(members) >= minimum)


def _conditions(
    group: PodGroupState, members: Sequence[Member], counts: Counts, phase: str, now: str
) -> list[Condition]:
    wanted = [_scheduled(group, members, counts)]
    if phase == FINISHED:
        text = f"{counts.succeeded} of {group.needed} needed pods succeeded"
        wanted.append((FINISHED, "True", "MembersSucceeded", text))
    if phase == FAILED:
        failed = sorted(m.name for m in members if m.phase == "Failed")
        more = f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        text = f"{counts.failed} of {counts.pods} pods failed: {', '.join(failed[:_NAMED])}{more}"
        wanted.append((FAILED, "True", "MemberFailed", text))
    before = {c.type: c for c in group.status.conditions or ()}
    made = []
    for kind, status, reason, message in wanted:
        old = before.get(kind)
        since = old.last_transition_time if old and old.status == status else now
        if (
            kind == SCHEDULED
            and old
            and _verdict(old.reason, old.message) != _verdict(reason, message)
        ):
            since = now  # that it cannot be placed, or that so many cannot, is true since now only
        if kind == FAILED:
            # When its pod ended, not when we saw that: the owner may have made a new one since.
            since = max((m.ended for m in members if m.phase == "Failed"), default="") or since
        made.append(Condition(kind, status, reason, message, since))
    if group.elastic_min and INITIALLY_SCHEDULED in before:
        made.append(before[INITIALLY_SCHEDULED])
    return made


def _initially_scheduled(group: PodGroupState, now: str) -> Condition:
    text = f"{group.min_member} pods had a node; from now on {group.elastic_min} are enough"
    return Condition(INITIALLY_SCHEDULED, "True", "EnoughScheduled", text, now)


def _verdict(reason: str, message: str) -> tuple[bool, int | None]:
    """Return whether a condition says that the gang fits nowhere, and how many pods of it."""
    found = read_refusal(message) if reason == UNSCHEDULABLE else None
    return reason == UNSCHEDULABLE, found.needed if found else None


def _refused(
    group: PodGroupState, members: Sequence[Member], counts: Counts
) -> tuple[Member, GangRefusal] | None:
    """Return what the scheduler found when it tried the group as it is now; None if it did not.

    What it said while the group had too few pods, or needed another number of them, does not count.
    """
    refused = [m for m in members if m.refusal and not m.bound]
    if not refused or not counts.scheduled < group.needed <= counts.pods:
        return None
    first = min(refused, key=lambda m: m.name)
    found = read_refusal(first.refusal)
    if found is None or found.needed not in (None, group.needed - counts.scheduled):
        return None
    return first, found


def _fits(group: PodGroupState, members: Sequence[Member], counts: Counts) -> int | None:
    """Return with how many members the group could be now, if it was found to fit in part."""
    refused = _refused(group, members, counts)
    if refused is None or refused[1].room is None or refused[1].evicting:
        return None
    return counts.scheduled + refused[1].room


def _scheduled(
    group: PodGroupState, members: Sequence[Member], counts: Counts
) -> tuple[str, str, str, str]:
    minimum = group.needed
    if counts.scheduled >= minimum:
        # Not how many: pods beyond the minimum come and go, and nobody needs a write for each.
        return SCHEDULED, "True", "EnoughScheduled", f"at least {minimum} pods have a node"
    if counts.pods < minimum:
        text = f"the group needs {counted(minimum, 'pod')} and has {counts.pods}"
        return SCHEDULED, "False", "NotEnoughPods", text
    if refused := _refused(group, members, counts):
        member, found = refused
        reason = "Preempting" if found.evicting else UNSCHEDULABLE
        return SCHEDULED, "False", reason, member.refusal
    return SCHEDULED, "False", "Waiting", f"{counts.scheduled} of {minimum} needed pods have a node"

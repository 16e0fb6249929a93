"""Gangs: which pods belong together, how many of them are placed, and what a crash left behind."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from alnair.model.workload import Gang, Pod
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.queue.unit import Place, SortKey, Unit
from alnair.scheduler.state.accounts import Record, State

GangKey = tuple[str, str]

#: Seconds before a failed request about a gang (clear its plan, evict a member) is made again.
RETRY_SECONDS: Final = 5.0
#: Seconds for which failures set a gang back in the queue: so long others may go before it.
SET_BACK_SECONDS: Final = 300.0


class GangState:
    """A PodGroup and its pods; `gang` is None while no PodGroup of that name is known."""

    __slots__ = (
        "clearing",
        "failed_at",
        "failing_since",
        "gang",
        "key",
        "members",
        "no_retry_before",
        "plan_seen",
        "planning",
        "unit",
    )

    def __init__(self, key: GangKey) -> None:
        self.key = key
        self.gang: Gang | None = None
        self.members: dict[str, Record] = {}
        self.unit = Unit("gang:{}/{}".format(*key), gang=True)
        #: Its plan is being written; its placed pods wait for that.
        self.planning = False
        #: The plan is to be cleared, and the request for it is on the way.
        self.clearing = False
        #: When this scheduler first saw the present plan. A new leader counts the timeout from
        #: here until it has tried to complete the gang.
        self.plan_seen = 0.0
        #: Since when it cannot be placed, and when that was found last; 0 if it was placed since,
        #: or has failed for so long that its failures do not count any more.
        self.failing_since = 0.0
        self.failed_at = 0.0
        #: A request about it failed: none is made again before this time.
        self.no_retry_before = 0.0

    @property
    def min_member(self) -> int:
        """Pods that must be placed together."""
        return self.gang.needed if self.gang else 1

    @property
    def elastic(self) -> bool:
        """Whether it shrinks to its minimum before it breaks."""
        return self.gang is not None and self.gang.elastic_min > 0

    @property
    def bound_together(self) -> bool:
        """Whether it matters to the others which of its members go."""
        return self.min_member > 1 or self.elastic

    def update(self, gang: Gang, now: float) -> bool:
        """Take in the PodGroup; returns whether the gang's chances may be better now."""
        old = self.gang
        self.gang = gang
        if gang.plan and (old is None or old.plan != gang.plan or old.planned != gang.planned):
            self.plan_seen = now
        return old is None or _decisive(old) != _decisive(gang)

    def failed(self, now: float) -> None:
        """Note that it could not be placed: for a while, that sets it back in the queue."""
        self.failing_since = self.failing_since or now
        self.failed_at = now if now < self.failing_since + SET_BACK_SECONDS else 0.0

    def found_no_room(self, now: float, profiles: Mapping[str, Profile]) -> None:
        """Note that a look at the cluster was enough to see that it cannot be placed.

        That sets it back no further, but in the end no more, as failing for long does.
        """
        if self.failed_at and now >= self.failing_since + SET_BACK_SECONDS:
            self.failed_at = 0.0
            self.line_up(profiles)

    def line_up(self, profiles: Mapping[str, Profile]) -> None:
        """Put the gang's unit where the first of its pods would be in the queue.

        As in scheduler-plugins' co-scheduling: by priority, then as if the pods had been created
        with the PodGroup, or when the gang last failed, so that a head that fails blocks nobody
        (see `SET_BACK_SECONDS`); then by name. Of equals, gangs go before lone pods: what is large
        is easier to place first.
        """
        keys = [self._keys(profiles, r.pod) for r in self.unit.pods.values()]
        self.unit.sort = min(sort for sort, _ in keys)
        self.unit.sort_by_age = min(sort_by_age for _, sort_by_age in keys)

    def line_up_too(self, profiles: Mapping[str, Profile], pod: Pod) -> None:
        """Note a further pod, which may bring the gang forward."""
        sort, sort_by_age = self._keys(profiles, pod)
        unit = self.unit
        unit.sort = min(unit.sort, sort) if unit.pods else sort
        unit.sort_by_age = min(unit.sort_by_age, sort_by_age) if unit.pods else sort_by_age

    def _keys(self, profiles: Mapping[str, Profile], pod: Pod) -> tuple[SortKey, SortKey]:
        """Return where a member would be in the queue, with the last failure and without it."""
        key = profiles[pod.scheduler].sorts[0].key
        since = self.gang.created if self.gang else pod.created
        name = "{}/{}".format(*self.key)
        sort_by_age: SortKey = (*key(msgspec.structs.replace(pod, created=since)), 0, name)
        if self.failed_at <= since:
            return sort_by_age, sort_by_age
        failed = msgspec.structs.replace(pod, created=self.failed_at)
        return (*key(failed), 0, name), sort_by_age

    def placed(self) -> list[Record]:
        """Return the members that are on a node, on the way there, or done."""
        return [
            r
            for r in self.members.values()
            if r.state is not State.PENDING and not (r.evicting or r.pod.deleting)
        ]

    def bound(self) -> list[Record]:
        """Return the members that the API server has on a node, or that are done."""
        return [r for r in self.placed() if r.state is not State.ASSUMED]

    def awaiting_plan(self) -> list[Record]:
        """Return the members that are placed and will be bound once the plan is written."""
        return [r for r in self.members.values() if r.state is State.ASSUMED and not r.in_flight]

    def lacking(self) -> int:
        """Return how many more pods must be placed together for the gang to be whole."""
        return max(0, self.min_member - len(self.placed()))

    def left_behind(self, now: float) -> list[Record]:
        """Return the bound members to evict: a crash cut their commit short for good."""
        if not self._timed_out(now) or not self.lacking():
            return []
        assert self.gang is not None
        return [r for r in self.bound() if r.state is State.BOUND and r.pod.name in self.gang.plan]

    def plan_is_over(self, now: float) -> bool:
        """Return whether the written plan has been carried out, or nothing is left of it."""
        if self.gang is None or not self.gang.plan or self.planning or self.clearing:
            return False
        if len(self.bound()) >= self.min_member:
            return True
        return self._timed_out(now) and all(
            r.state in (State.PENDING, State.FINISHED) for r in self.members.values()
        )

    def _timed_out(self, now: float) -> bool:
        gang = self.gang
        if gang is None or not gang.plan or self.planning:
            return False
        # Leaders that die again and again must not begin it anew: once this one has tried in vain
        # to complete the gang, the age of the plan counts.
        since = self.plan_seen
        if self.failing_since and gang.planned:
            since = min(since, gang.planned)
        return now >= since + gang.timeout_seconds


def in_turn(records: Iterable[Record]) -> list[Record]:
    """Return the pods of a gang in the order in which they are placed."""
    return sorted(records, key=lambda r: (-r.pod.priority, r.pod.created, r.pod.name))


def lone_key(profile: Profile, pod: Pod) -> SortKey:
    """Return where a lone pod goes in the queue; equals go in the order in which they came."""
    return (*profile.sorts[0].key(pod), 1)


def _decisive(gang: Gang) -> tuple[object, ...]:
    """Return what of a PodGroup decides when and where its pods go."""
    return gang.needed, gang.min_resources, gang.topology, gang.problem, gang.created


class Gangs:
    """All gangs by namespace and name; those without PodGroup and pods are forgotten."""

    def __init__(self) -> None:
        self._gangs: dict[GangKey, GangState] = {}
        #: Gangs that have a written plan, in the order in which they came: decisions must not
        #: depend on how Python orders a set.
        self.unfinished: dict[GangKey, None] = {}

    def of(self, key: GangKey) -> GangState:
        """Return the gang's state."""
        state = self._gangs.get(key)
        if state is None:
            state = self._gangs[key] = GangState(key)
        return state

    def find(self, key: GangKey) -> GangState | None:
        """Return the gang's state if there is one."""
        return self._gangs.get(key)

    def all(self) -> Iterable[GangState]:
        """Return every gang's state."""
        return self._gangs.values()

    def left_in_part(self) -> list[GangState]:
        """Return the gangs that a leader before this one began to bind, until they are tried."""
        open_plans = (self._gangs[key] for key in self.unfinished if key in self._gangs)
        return [
            state
            for state in open_plans
            if state.unit.place is Place.ACTIVE
            and not state.failing_since
            and state.lacking()
            and state.bound()
        ]

    def forget_if_empty(self, state: GangState) -> None:
        """Drop a gang that has neither PodGroup nor pods."""
        if state.gang is None and not state.members:
            self._gangs.pop(state.key, None)
            self.unfinished.pop(state.key, None)

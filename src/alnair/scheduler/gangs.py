"""Gangs: which pods belong together, how many of them are placed, and what a crash left behind."""

from alnair.model.workload import Gang
from alnair.scheduler.accounts import Record, State
from alnair.scheduler.queue import Unit

GangKey = tuple[str, str]


class GangState:
    """A PodGroup and its pods; `gang` is None while no PodGroup of that name is known."""

    def __init__(self, key: GangKey) -> None:
        self.key = key
        self.gang: Gang | None = None
        self.members: dict[str, Record] = {}
        self.unit = Unit("gang:{}/{}".format(*key))
        #: Its plan is being written; its placed pods wait for that.
        self.planning = False
        #: The plan is to be cleared, and the request for it is on the way.
        self.clearing = False

    @property
    def min_member(self) -> int:
        """Pods that must be placed together."""
        return self.gang.min_member if self.gang else 1

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

    def lacking(self) -> int:
        """Return how many more pods must be placed together for the gang to be whole."""
        return max(0, self.min_member - len(self.placed()))

    def left_behind(self, now: float) -> list[Record]:
        """Return the bound members to evict: a commit that a crash cut short and that cannot be completed."""
        gang = self.gang
        if gang is None or not gang.plan or self.planning or not self.lacking():
            return []
        if now < gang.planned + gang.timeout_seconds:
            return []
        return [r for r in self.bound() if r.state is State.BOUND and r.pod.name in gang.plan]

    def plan_is_done(self) -> bool:
        """Return whether the written plan has been carried out."""
        return bool(
            self.gang
            and self.gang.plan
            and not self.planning
            and not self.clearing
            and len(self.bound()) >= self.min_member
        )


class Gangs:
    """All gangs by namespace and name; those without PodGroup and pods are forgotten."""

    def __init__(self) -> None:
        self._gangs: dict[GangKey, GangState] = {}
        #: Gangs with a plan, or to be looked at again.
        self.unfinished: set[GangKey] = set()

    def of(self, key: GangKey) -> GangState:
        """Return the gang's state."""
        state = self._gangs.get(key)
        if state is None:
            state = self._gangs[key] = GangState(key)
        return state

    def find(self, key: GangKey) -> GangState | None:
        """Return the gang's state if there is one."""
        return self._gangs.get(key)

    def forget_if_empty(self, state: GangState) -> None:
        """Drop a gang that has neither PodGroup nor pods."""
        if state.gang is None and not state.members:
            self._gangs.pop(state.key, None)
            self.unfinished.discard(state.key)

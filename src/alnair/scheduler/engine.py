"""The engine: events in, actions out.

It holds all state of scheduling (books, queue, gangs, bindings on the way) and knows neither network nor
clock. The live process and the simulator drive the same `step`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from alnair.model.action import Action, Bind, Evict, Report, WritePlan
from alnair.model.workload import Gang, Pod
from alnair.scheduler import events
from alnair.scheduler.accounts import Accounts, Record, State
from alnair.scheduler.attempt import Attempts
from alnair.scheduler.evaluations import Evaluations
from alnair.scheduler.framework import Profile
from alnair.scheduler.gangs import Gangs, GangState
from alnair.scheduler.queue import ClassKey, Place, Queue, Unit

#: A pod of ours placed so recently may have crossed with another scheduler's; older ones it could see.
CROSSING_SECONDS: Final = 10.0
#: Decisions per step at most, so that events are read in between.
STEP_LIMIT: Final = 64


class Engine:
    """The scheduler as a state machine.

    Args:
        profiles: what it schedules, by scheduler name.
        seed: chooses the permutation of nodes that breaks ties.
        timer: seconds from anywhere, to measure decisions with; None measures nothing.
    """

    def __init__(
        self,
        profiles: Iterable[Profile],
        *,
        seed: int = 0,
        timer: Callable[[], float] | None = None,
    ) -> None:
        self.accounts = Accounts(seed)
        self.evaluations = Evaluations(self.accounts.cluster)
        self.queue = Queue()
        self.gangs = Gangs()
        self._profiles = {p.scheduler: p for p in profiles}
        self._units: dict[str, Unit] = {}
        self._attempts = Attempts(
            self.accounts, self.evaluations, self._profiles, self.queue, timer
        )
        self._looking = False
        self._assumed = 0

    @property
    def decision_seconds(self) -> list[float]:
        """How long each decision took; the caller takes them out."""
        return self._attempts.seconds

    @property
    def in_flight(self) -> int:
        """Number of pods whose Binding is on the way."""
        return self._assumed

    def step(
        self, batch: Sequence[events.Event], now: float, limit: int = STEP_LIMIT
    ) -> list[Action]:
        """Take in what happened, decide on up to about `limit` pods, and return what to do.

        Args:
            batch: events in their order.
            now: seconds since the epoch.
            limit: pods to decide on; a gang is decided whole.
        """
        actions: list[Action] = []
        for event in batch:
            self._take(event, now, actions)
        self.queue.release(now)
        if self._looking:
            self._looking = self.queue.wake(self._may_fit)
        while limit > 0 and (unit := self.queue.pop()):
            limit -= self._try(unit, now, actions)
        self._finish_gangs(now, actions)
        self._assumed += sum(isinstance(a, Bind) for a in actions)
        return actions

    def next_wake(self, now: float) -> float | None:
        """Return when to call `step` again without an event; None if not before the next one."""
        if self._looking or self.queue.count(Place.ACTIVE):
            return now
        times = [t for t in (self.queue.next_release(),) if t is not None]
        if self.gangs.unfinished:
            times.append(now + 1.0)
        return min(times, default=None)

    # --- events ---------------------------------------------------------------------------------

    def _take(self, event: events.Event, now: float, actions: list[Action]) -> None:
        match event:
            case events.PodChanged(pod):
                self._pod_changed(pod, now, actions)
            case events.BindDone(uid, error):
                self._bind_done(uid, error, now, actions)
            case events.PodGone(uid):
                self._pod_gone(uid)
            case events.NodeChanged(node):
                if self.accounts.put_node(node):
                    self._helps()
            case events.NodeGone(name):
                self.accounts.remove_node(name)
                self._helps()
            case events.GangChanged(gang):
                self._gang_changed(gang)
            case events.GangGone(namespace, name):
                if state := self.gangs.find((namespace, name)):
                    state.gang = None
                    self.gangs.forget_if_empty(state)
            case events.PlanDone(namespace, name, error):
                if state := self.gangs.find((namespace, name)):
                    self._plan_done(state, error, now, actions)
            case events.EvictDone(uid, error):
                record = self.accounts.records.get(uid)
                if record and error:
                    record.evicting = False

    def _pod_changed(self, pod: Pod, now: float, actions: list[Action]) -> None:
        record = self.accounts.records.get(pod.uid)
        ours = pod.scheduler in self._profiles
        if record is None:
            if not ours and (not pod.node or pod.finished):
                return  # nothing is held, and nothing is to be decided
            record = self.accounts.records[pod.uid] = Record(pod)
            if ours and pod.group:
                self.gangs.of((pod.namespace, pod.group)).members[pod.uid] = record
        old, record.pod = record.pod, pod
        if pod.finished:
            self._finished(record)
        elif pod.node:
            self._bound(record, old, now, actions)
        elif record.state is State.PENDING and ours:
            self._enqueue(record)

    def _bound(self, record: Record, old: Pod, now: float, actions: list[Action]) -> None:
        pod = record.pod
        same = record.node == pod.node and old.spec is pod.spec
        if same and record.state is State.BOUND:
            return
        if same and record.state is State.ASSUMED:
            self._confirm(record)
            return
        if record.state is State.ASSUMED:
            self._assumed -= 1
        placed_at = record.placed_at if record.state is State.BOUND else now
        if record.state is not State.PENDING:
            # The node, the size, or what was assumed is not what the API server says, and it is right.
            record.pod = old
            self.accounts.release(record, State.PENDING)
            record.pod = pod
            self._helps()
        self._dequeue(record)
        self.accounts.place(record, pod.node, State.BOUND, placed_at)
        self._resolve_crossing(record.row, now, actions)

    def _confirm(self, record: Record) -> None:
        record.state = State.BOUND
        self._assumed -= 1

    def _finished(self, record: Record) -> None:
        if record.state is State.FINISHED:
            return
        self._dequeue(record)
        if record.state is not State.PENDING:
            self._assumed -= record.state is State.ASSUMED
            self.accounts.release(record, State.FINISHED)
            self._helps()
        record.state = State.FINISHED
        if not record.pod.group or record.pod.scheduler not in self._profiles:
            del self.accounts.records[record.pod.uid]

    def _pod_gone(self, uid: str) -> None:
        record = self.accounts.records.pop(uid, None)
        if record is None:
            return
        self._dequeue(record)
        if record.state in (State.ASSUMED, State.BOUND):
            self._assumed -= record.state is State.ASSUMED
            self.accounts.release(record, State.FINISHED)
            self._helps()
        if state := self._gang_of(record):
            state.members.pop(uid, None)
            self.gangs.forget_if_empty(state)

    def _bind_done(self, uid: str, error: str, now: float, actions: list[Action]) -> None:
        record = self.accounts.records.get(uid)
        if record is None:
            return
        if not error:
            if record.state is State.ASSUMED:
                self._confirm(record)
            record.message = ""
            actions.append(
                Report(
                    record.pod,
                    "Scheduled",
                    f"Successfully assigned {record.pod.namespace}/{record.pod.name} to {record.node}",
                )
            )
            if record.evicting:  # it crossed with another scheduler's pod while it was on the way
                actions.append(self._crossed(record))
        elif record.state is State.ASSUMED:
            self._assumed -= 1
            self.accounts.release(record, State.PENDING)
            record.evicting = False
            self._helps()
            self._retry(record, now)

    def _retry(self, record: Record, now: float) -> None:
        self._enqueue(record)
        if unit := self._unit_of(record):
            unit.attempts += 1
            self.queue.back_off(unit, now)

    def _gang_changed(self, gang: Gang) -> None:
        key = (gang.namespace, gang.name)
        state = self.gangs.of(key)
        changed = state.gang is None or state.gang.min_member != gang.min_member
        state.gang = gang
        if gang.plan:
            self.gangs.unfinished.add(key)
        if changed and state.unit.pods:
            self.queue.activate(state.unit)

    def _plan_done(self, state: GangState, error: str, now: float, actions: list[Action]) -> None:
        if state.clearing:
            state.clearing = False
            if not error and state.gang:
                self.gangs.unfinished.discard(state.key)
            return
        if not state.planning:
            return
        state.planning = False
        waiting = [r for r in state.members.values() if r.state is State.ASSUMED]
        if error:
            for record in waiting:
                self.accounts.release(record, State.PENDING)
                self._enqueue(record)
            state.unit.attempts += 1
            self.queue.back_off(state.unit, now)
            self._helps()
            return
        self.gangs.unfinished.add(state.key)
        actions.extend(self._attempts.bind(r) for r in waiting)
        if state.unit.pods:  # members that came while the plan was written
            self.queue.activate(state.unit)

    # --- queue ----------------------------------------------------------------------------------

    def _enqueue(self, record: Record) -> None:
        pod = record.pod
        profile = self._profiles[pod.scheduler]
        if pod.deleting or any(p.pre_enqueue(pod) for p in profile.pre_enqueues):
            self._dequeue(record)
            return
        state = self._gang_of(record)
        if state:
            unit = state.unit
        else:
            unit = self._units.setdefault(pod.uid, Unit(pod.uid))
        known = unit.pods.get(pod.uid)
        unit.pods[pod.uid] = record
        if known is not None and unit.place is not Place.NOWHERE:
            return
        # A gang goes where its first pod would.
        unit.sort = min(profile.sorts[0].key(r.pod) for r in unit.pods.values())
        if unit.place is not Place.BACKOFF:
            self.queue.activate(unit)

    def _dequeue(self, record: Record) -> None:
        unit = self._unit_of(record)
        if unit and unit.pods.pop(record.pod.uid, None) and not unit.pods:
            self.queue.drop(unit)
            self._units.pop(record.pod.uid, None)

    def _unit_of(self, record: Record) -> Unit | None:
        state = self._gang_of(record)
        return state.unit if state else self._units.get(record.pod.uid)

    def _gang_of(self, record: Record) -> GangState | None:
        pod = record.pod
        if not pod.group or pod.scheduler not in self._profiles:
            return None
        return self.gangs.find((pod.namespace, pod.group))

    def _helps(self) -> None:
        self._looking = True
        self.queue.changed()

    def _may_fit(self, key: ClassKey) -> bool:
        scheduler, spec = key
        evaluation = self.evaluations.of(spec, self._profiles[scheduler])
        return evaluation.refusal is None and evaluation.best() is not None

    # --- decisions ------------------------------------------------------------------------------

    def _try(self, unit: Unit, now: float, actions: list[Action]) -> int:
        count = len(unit.pods)
        first = next(iter(unit.pods.values()), None)
        if first is None:
            return 0
        state = self._gang_of(first)
        if state is None:
            self._attempts.pod(unit, first, now, actions)
            if first.state is State.ASSUMED:
                self._units.pop(first.pod.uid, None)
        else:
            self._attempts.gang(state, now, actions)
        return count

    def _finish_gangs(self, now: float, actions: list[Action]) -> None:
        for key in list(self.gangs.unfinished):
            state = self.gangs.find(key)
            if state is None or state.gang is None:
                self.gangs.unfinished.discard(key)
            elif state.plan_is_done():
                state.clearing = True
                actions.append(WritePlan(state.gang, {}))
            else:
                for record in state.left_behind(now):
                    record.evicting = True
                    message = "its gang could not be completed after a restart of the scheduler"
                    actions.append(Evict(record.pod, "GangIncomplete", message))

    def _resolve_crossing(self, row: int, now: float, actions: list[Action]) -> None:
        """Evict the newest of our pods that crossed with another scheduler's on this row.

        The API server checks no resources at binding, so two schedulers can give away the same ones. The
        other scheduler could see what we bound earlier, so only recent pods can have crossed.
        """
        if row < 0 or not self.accounts.overcommitted(row):
            return
        on_row = self.accounts.on_row[row].values()
        if all(r.pod.scheduler in self._profiles for r in on_row):
            return  # no other scheduler is involved
        recent = [
            r
            for r in on_row
            if r.pod.scheduler in self._profiles
            and not (r.evicting or r.pod.deleting)
            and now - r.placed_at < CROSSING_SECONDS
        ]
        going = [r for r in on_row if r.evicting or r.pod.deleting]
        for record in self.accounts.to_relieve(row, recent[::-1], going):
            record.evicting = True
            if record.state is State.BOUND:
                actions.append(self._crossed(record))

    def _crossed(self, record: Record) -> Evict:
        message = f"another scheduler placed a pod on {record.node} at the same moment"
        return Evict(record.pod, "NodeCrossed", message)

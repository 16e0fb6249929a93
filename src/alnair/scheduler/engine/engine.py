"""The engine: events in, actions out.

It holds all state of scheduling (books, queue, gangs, bindings on the way) and knows neither
network nor clock. The live process and the simulator drive the same `step`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from alnair.model.action import Action, Bind, Evict, Report, WritePlan
from alnair.model.api_types import Holdings
from alnair.model.workload import Gang, Pod
from alnair.scheduler.engine import events
from alnair.scheduler.engine.attempts import Attempts
from alnair.scheduler.engine.evictions import CROSSED, Evictions, evict_crossed
from alnair.scheduler.engine.following import Following
from alnair.scheduler.engine.refusal_updates import RefusalUpdates
from alnair.scheduler.engine.view import View
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.framework.observers import Observers
from alnair.scheduler.gangs.gangs import RETRY_SECONDS, GangKey, Gangs, GangState
from alnair.scheduler.gangs.membership import Membership
from alnair.scheduler.metric_counters import SchedulerCounters
from alnair.scheduler.placement.admission import Admission
from alnair.scheduler.placement.backfill import PATIENCE, Backfill
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.quick_check import QuickCheck
from alnair.scheduler.preemption.preemption import Preemption
from alnair.scheduler.queue.neighbour_wakeups import NeighbourChanges
from alnair.scheduler.queue.queue import Queue
from alnair.scheduler.queue.unit import Place, Unit
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.objects.api_objects import Key
from alnair.scheduler.state.objects.elastic_quotas import Quotas
from alnair.scheduler.state.pods import default_selectors

#: Reason of evictions of what a crash left of a gang.
INCOMPLETE: Final = "GangIncomplete"
#: Decisions per step at most, so that events are read in between.
STEP_LIMIT: Final = 64


class Engine:
    """The scheduler as a state machine.

    Args:
        profiles: what it schedules, by scheduler name.
        seed: chooses the permutation of nodes that breaks ties.
        order: names of nodes that win ties before all others, the first before the second.
        timer: seconds from anywhere, to measure decisions with; None measures nothing.
        counters: where to count on; None begins anew.
        patience: seconds that a unit waits before nodes are reserved for it; None = never.

    Attributes:
        counters: what was counted.
        view: what the engine knows, to read between two steps.
    """

    def __init__(
        self,
        profiles: Iterable[Profile],
        *,
        seed: int = 0,
        order: Sequence[str] = (),
        timer: Callable[[], float] | None = None,
        counters: SchedulerCounters | None = None,
        patience: float | None = PATIENCE,
    ) -> None:
        accounts = Accounts(seed, order)
        gangs = Gangs()
        quotas = Quotas(accounts.objects, accounts.usage)
        by_name = {p.scheduler: p for p in profiles}
        self.counters = counters if counters is not None else SchedulerCounters()
        queue = Queue(self.counters, quotas)
        observers = Observers(by_name.values(), accounts.cluster)
        context = EngineContext(
            accounts=accounts,
            evaluations=Evaluations(accounts.cluster),
            profiles=by_name,
            quotas=quotas,
            queue=queue,
            gangs=gangs,
            members=Membership(accounts, queue, gangs, by_name),
            observers=observers,
            counters=self.counters,
            timer=timer,
        )
        self._accounts = accounts
        self._queue = queue
        self._gangs = gangs
        self._profiles = by_name
        self._members = context.members
        self._observers = observers
        self._admission = Admission(context)
        self._backfill = Backfill(context, self._admission, patience)
        self._preemption = Preemption(context)
        self._quick_check = QuickCheck(context)
        self._attempts = Attempts(context, self._admission, self._preemption, self._quick_check)
        self._evictions = Evictions(context, self._preemption)
        self._refusal_updates = RefusalUpdates(context)
        self._looking = False
        self._neighbour_changes = NeighbourChanges()
        self._in_flight = 0
        self._following = Following(context, self._admission, self._preemption)
        self.view = View(context, self._admission, self._preemption)

    @property
    def decision_seconds(self) -> list[float]:
        """How long each decision took; the caller takes them out."""
        return self._attempts.seconds

    @property
    def in_flight(self) -> int:
        """Number of pods whose Binding is on the way and does not wait for storage."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Number of units (gangs and lone pods) that are to be tried, now or later."""
        return len(self._queue)

    def has_crossed(self, uid: str) -> bool:
        """Return whether another scheduler's pod took the room before our Binding was done."""
        record = self._accounts.records.get(uid)
        return record is not None and record.state is State.ASSUMED and record.evicting == CROSSED

    def learn(self, batch: Sequence[events.Event], now: float) -> None:
        """Take in what exists at the start; nothing is decided before all of it is known.

        Args:
            batch: changes of nodes, pods and gangs, any part of all that exists.
            now: seconds since the epoch.
        """
        actions: list[Action] = []
        for event in batch:
            self._take(event, now, actions)
        self._observers.learn()
        self._looking |= self._queue.neighbours_changed(self._neighbour_changes)
        assert not actions  # only results of actions lead to actions before `step`

    def follow(
        self, batch: Sequence[events.Event], now: float, held: Holdings | None = None
    ) -> None:
        """Take in what happened and what the leader holds, decide nothing: for those who ask."""
        self.learn(batch, now)
        self._note_loads(self._accounts.loads.expire(now))
        self._following.follow(batch, held)

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
        self._observers.learn()
        self._note_loads(self._accounts.loads.expire(now))
        better = self._admission.follow()
        if self._backfill.follow(now) or better:
            self._helps()
        self._members.refine_classes()
        self._evictions.follow(now, actions)
        self._queue.release(now)
        if self._looking:
            self._quick_check.begin(now)
            self._looking = self._queue.wake(
                now, self._quick_check.may_fit, self._quick_check.hopeful
            )
        self._preemption.retries.follow(now)
        for state in self._gangs.left_in_part():  # they hold nodes and do nothing, so they go first
            self._queue.drop(state.unit)
            limit -= self._try(state.unit, now, actions)
        while limit > 0 and (unit := self._queue.pop()):
            limit -= self._try(unit, now, actions)
        self._quick_check.end()
        if self._preemption.after():
            self._helps()
        self._finish_gangs(now, actions)
        for bind in (a for a in actions if isinstance(a, Bind)):
            self._in_flight += not (bind.claims or bind.together)
            self._neighbour_changes.pod_came(bind.pod)
        self._looking |= self._queue.neighbours_changed(self._neighbour_changes)
        return actions

    def update_refusals(self) -> Sequence[Action]:
        """Return what to tell owners of waiting pods that are refused for other reasons by now.

        Nothing is tried, so call it now and then, not at each change.
        """
        return self._refusal_updates.reports()

    def next_wake(self, now: float) -> float | None:
        """Return when to call `step` again without an event; None if not before the next one."""
        if self._looking or self._queue.count(Place.ACTIVE):
            return now
        due = (
            self._queue.next_release(),
            self._backfill.next_look(),
            self._preemption.retries.next(),
            self._evictions.next_try(),
            self._accounts.loads.next_expiry() if len(self._queue) else None,
        )
        times = [t for t in due if t is not None]
        if self._gangs.unfinished:
            times.append(now + 1.0)
        return min(times, default=None)

    # --- events ---------------------------------------------------------------------------------

    def _take(self, event: events.Event, now: float, actions: list[Action]) -> None:
        match event:
            case events.PodChanged(pod):
                self._pod_changed(pod, now, actions)
            case events.BindDone(uid, error):
                if record := self._accounts.records.get(uid):
                    self._bind_done(record, error, now, actions)
            case events.PodGone(uid):
                self._pod_gone(uid)
            case events.PlanDone(namespace, name, error):
                if state := self._gangs.find((namespace, name)):
                    self._plan_done(state, error, now, actions)
            case events.EvictDone(uid, error):
                if error:
                    self._evictions.failed(uid, now)
            case _:
                self._take_other(event, now)

    def _take_other(self, event: events.Event, now: float) -> None:
        """Take in a change of what pods are placed on and by."""
        match event:
            case events.NodeChanged(node):
                if self._accounts.put_node(node, now):
                    self._observers.node_changed(node)
                    self._helps()
            case events.NodeGone(name):
                self._observers.node_gone(name)
                self._accounts.remove_node(name)
                self._neighbour_changes.node_went()
            case events.GangChanged(gang):
                self._gang_changed(gang, now)
            case events.GangGone(namespace, name):
                self._gang_gone((namespace, name))
            case events.PluginStates(states):
                self._observers.restore(states)
            case events.AgentAlive(lease, renewed):
                self._note_loads(self._accounts.loads.renew(lease, renewed, now))
            case events.ObjectChanged(kind, namespace, name, value):
                if kind in default_selectors.KINDS:
                    self._members.notice_peers(kind, value)
                if self._accounts.objects.put(kind, (namespace, name), value):
                    self._object_helps(kind, (namespace, name))
            case events.ObjectGone(kind, namespace, name):
                if self._accounts.objects.remove(kind, (namespace, name)):
                    self._object_helps(kind, (namespace, name))

    def _pod_changed(self, pod: Pod, now: float, actions: list[Action]) -> None:
        record = self._accounts.records.get(pod.uid)
        ours = pod.scheduler in self._profiles
        old: Pod | None = None
        if record is None:
            if not ours and (not pod.node or pod.finished):
                return  # nothing is held, and nothing is to be decided
            record = self._accounts.records[pod.uid] = Record(pod)
            self._observers.pod_added(pod)
            record.queued_at = now
            self._members.classify(record)
            if ours:
                self._members.join(record)
        else:
            old, record.pod = record.pod, pod
            if old.gated and not pod.gated:
                record.queued_at = now
            if (old.spec, old.labels) != (pod.spec, pod.labels):
                self._members.classify(record)
            if self._accounts.relabel(record):
                self._helps()
            self._members.regroup(record)
            if record.state is State.FINISHED:
                return  # a pod that ended does not come back
        self._preemption.noticed(record, old)
        if pod.finished:
            self._finished(record)
        elif pod.node:
            self._bound(record, old, now, actions)
        elif record.state is State.PENDING and ours:
            self._members.enqueue(record, old)

    def _bound(self, record: Record, old: Pod | None, now: float, actions: list[Action]) -> None:
        pod = record.pod
        if self._accounts.holds(record, pod.node):
            if record.state is State.ASSUMED:
                self._confirm(record, now, actions)
            moved = old is None or pod.assignment != old.assignment
            if moved and self._accounts.reassign(record):
                self._helps()
            return
        placed_at = record.placed_at
        stayed = record.node == pod.node and record.state is not State.PENDING
        if record.state is not State.BOUND:
            # Of a pod that was bound before we knew it, only its own word says when.
            placed_at = pod.bound_at or (0.0 if old is None else now)
        self._landed(record)
        if record.state is not State.PENDING:
            # What was assumed, or its size, is not what the API server says, and it is right.
            self._accounts.release(record, State.PENDING)
            if not stayed:
                record.evicting = ""
            self._helps()
        self._members.dequeue(record)
        self._accounts.place(record, pod.node, State.BOUND, placed_at)
        self._neighbour_changes.pod_came(pod)
        self._members.regroup(record)
        if not stayed and record.row >= 0:
            self._evictions.suspect(record.row)
        if (state := self._members.gang_of(record)) and state.unit.pods:
            self._members.retry_gang(state)  # it lacks one less now

    def _confirm(self, record: Record, now: float, actions: list[Action]) -> None:
        """Note that the Binding of a pod was done: its answer or the pod itself says so."""
        self.counters.scheduled(
            record.pod.scheduler, now - record.placed_at, now - record.queued_at, record.tries
        )
        record.state = State.BOUND
        record.placed_at = now  # only from now on can others see it
        self._landed(record)
        if state := self._members.gang_of(record):
            if not state.lacking():
                state.unit.attempts = 0
        else:
            self._members.forget_unit(record)
        self._members.regroup(record)
        if record.evicting:  # it crossed with another scheduler's pod while it was on the way
            actions.append(evict_crossed(record))

    def _landed(self, record: Record) -> None:
        self._in_flight -= record.in_flight and not record.awaits_storage
        record.in_flight = False

    def _finished(self, record: Record) -> None:
        self._withdraw(record)
        if record.group:
            if (state := self._members.gang_of(record)) and state.unit.pods:
                self._members.retry_gang(state)  # it counts as placed
        else:
            del self._accounts.records[record.pod.uid]

    def _pod_gone(self, uid: str) -> None:
        record = self._accounts.records.pop(uid, None)
        if record is not None:
            self._withdraw(record)
            self._members.leave_gang(record)

    def _withdraw(self, record: Record) -> None:
        """Take a pod that ended out of the queue and the books."""
        self._members.dequeue(record)
        self._landed(record)
        if record.state is not State.FINISHED:
            self._observers.pod_gone(record.pod)
        if record.state in (State.ASSUMED, State.BOUND):
            node = record.node
            self._accounts.release(record, State.FINISHED)
            self._helps()
            self._preemption.left(node)
        record.state = State.FINISHED
        self._preemption.gone(record.pod.uid)

    def _bind_done(self, record: Record, error: str, now: float, actions: list[Action]) -> None:
        pod = record.pod
        if error:
            if record.in_flight:
                self.counters.attempt("error", pod.scheduler, now - record.placed_at)
                self._landed(record)
                if record.claims:  # people can do something about storage
                    actions.append(Report(pod, "FailedScheduling", error))
                self._release_assumed(record)
                self._back_off(record, now)
            return
        if record.in_flight:
            self._confirm(record, now, actions)
        record.message = ""
        if node := record.node or pod.node:
            text = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
            actions.append(Report(pod, "Scheduled", text))
            if pod.ignored:
                actions.append(Report(pod, "AnnotationIgnored", pod.ignored))

    def _release_assumed(self, record: Record) -> None:
        node = record.node
        self._accounts.release(record, State.PENDING)
        self._preemption.left(node)
        record.evicting = ""
        self._members.regroup(record)
        self._helps()
        self._members.enqueue(record, None)

    def _back_off(self, record: Record, now: float) -> None:
        unit = self._members.unit_of(record)
        if unit and unit.pods and unit.place is not Place.BACKOFF:
            unit.attempts += 1
            self._queue.back_off(unit, now, "BindingFailure")

    def _gang_changed(self, gang: Gang, now: float) -> None:
        state = self._gangs.of((gang.namespace, gang.name))
        better = state.update(gang, now)
        if gang.plan:
            self._gangs.unfinished[state.key] = None
        if better:
            self._members.gang_changed(state)

    def _gang_gone(self, key: GangKey) -> None:
        if state := self._gangs.find(key):
            state.gang = None
            self._members.gang_changed(state)  # to say why it waits now
            self._gangs.forget_if_empty(state)

    def _plan_done(self, state: GangState, error: str, now: float, actions: list[Action]) -> None:
        if state.clearing:
            state.clearing = False
            if error:
                state.no_retry_before = now + RETRY_SECONDS
            else:
                self._gangs.unfinished.pop(state.key, None)
            if state.unit.pods:  # no new plan could be made meanwhile
                self._members.retry_gang(state)
            return
        if not state.planning:
            return
        state.planning = False
        waiting = state.awaiting_plan()
        if error or state.lacking() or any(map(_is_gone, waiting)):
            # Members, nodes or GPUs went away while the plan was written: it must not be begun.
            for record in waiting:
                self._release_assumed(record)
            if waiting:
                self._back_off(waiting[0], now)
            return
        together = "{}/{}".format(*state.key) if any(r.claims for r in waiting) else ""
        actions.extend(self._attempts.bind(r, together) for r in waiting)
        if state.unit.pods:  # members that came while the plan was written
            self._members.retry_gang(state)

    # --- queue ----------------------------------------------------------------------------------

    def _note_loads(self, rows: Sequence[int]) -> None:
        """Note that what is known of these rows' loads has changed."""
        for row in rows:
            self._accounts.columns.nodes_changed.add(row)
        if rows:
            self._helps()

    def _helps(self) -> None:
        self._looking = True
        self._queue.changed()
        self._preemption.retries.changed()

    def _object_helps(self, kind: str, key: Key) -> None:
        if self._queue.object_changed(kind, key):
            self._looking = True
            self._preemption.retries.changed()

    # --- decisions ------------------------------------------------------------------------------

    def _try(self, unit: Unit, now: float, actions: list[Action]) -> int:
        count = len(unit.pods)
        first = next(iter(unit.pods.values()), None)
        if first is None:
            return 0
        if state := self._members.gang_of(first):
            self._attempts.gang(state, now, actions)
        else:
            self._attempts.pod(unit, first, now, actions)
        return count

    def _finish_gangs(self, now: float, actions: list[Action]) -> None:
        for key in list(self._gangs.unfinished):
            state = self._gangs.find(key)
            if state is None or state.gang is None or not state.gang.plan:
                self._gangs.unfinished.pop(key, None)
            elif now < state.no_retry_before:
                continue
            elif state.plan_is_over(now):
                state.clearing = True
                actions.append(WritePlan(state.gang, {}))
            else:
                for record in state.left_behind(now):
                    record.evicting = INCOMPLETE
                    message = "its gang could not be completed after a restart of the scheduler"
                    actions.append(Evict(record.pod, INCOMPLETE, message))


def _is_gone(record: Record) -> bool:
    """Return whether a placed pod, or what was chosen for it, is not there any more."""
    return bool(record.row < 0 or not record.decided or record.evicting or record.pod.deleting)

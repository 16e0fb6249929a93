"""One attempt at a unit: place it whole and say so, or say why not."""

from collections.abc import Iterable, Sequence

from alnair.model.action import Action, Bind, Report, WritePlan
from alnair.model.workload import Planned, PodGpuAssignment
from alnair.scheduler.engine.refusal_updates import without_counts
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.framework.refusal_message import refusal_message
from alnair.scheduler.gangs.gang_refusal import figures, untried
from alnair.scheduler.gangs.gangs import GangState, in_turn
from alnair.scheduler.gangs.readiness import not_ready, resource_gap
from alnair.scheduler.placement.admission import Admission
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.gang_placement import GangPlacement
from alnair.scheduler.placement.quick_check import QuickCheck
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.preemption.preemption import Preemption
from alnair.scheduler.queue.unit import ClassKey, Unit
from alnair.scheduler.state.accounts import Record, State
from alnair.scheduler.state.gpus.gpu_assignment import assign
from alnair.scheduler.state.nodes.columns import Mask
from alnair.scheduler.state.objects.elastic_quotas import KIND as QUOTA


class Attempts:
    """Tries units; `seconds` collects how long each pod's decision took.

    Args:
        context: what to decide from.
        admission: what holds pods back besides their nodes.
        preemption: makes room, and holds it.
        quick_check: knows who may fit.
    """

    def __init__(
        self,
        context: EngineContext,
        admission: Admission,
        preemption: Preemption,
        quick_check: QuickCheck,
    ) -> None:
        self._context = context
        self._accounts = context.accounts
        self._evaluations = context.evaluations
        self._profiles = context.profiles
        self._queue = context.queue
        self._timer = context.timer
        self._counters = context.counters
        self._admission = admission
        self._preemption = preemption
        self._quick_check = quick_check
        self.seconds: list[float] = []

    def pod(self, unit: Unit, record: Record, now: float, actions: list[Action]) -> None:
        """Try a lone pod."""
        start = self._timer() if self._timer else 0.0
        profile = self._profiles[record.pod.scheduler]
        key = record.key
        self._preemption.before((record,))
        if record.pod.problem:
            self._queue.hold(unit)
            self._preemption.give_up((record,), actions)
            record.refused_by = ()
            self._refuse(record, record.pod.problem, actions)
        elif over := self._admission.refuse([record]):
            unit.attempts += 1
            self._queue.park(unit, key, now)
            self._preemption.give_up((record,), actions)
            record.refused_by = (QUOTA,)
            self._refuse(record, over, actions)
        elif self._quick_check.is_gone(key) and not self._preemption.may_preempt([record]):
            self._lost(unit, record, self._evaluations.compiled(record.spec, profile), now, actions)
        elif refused := self._place(
            record, profile, allowed := self._admission.allowed(unit, record, now), now
        ):
            unit.attempts += 1
            message = self._admission.why(refused, allowed)
            record.refused_by = refused.refused_by()
            if refused.refusal is None:
                self._queue.park(unit, key, now)
                self._quick_check.refused(unit, refused, nowhere=not refused.possible().any())
                message += self._preemption.for_pod(unit, record, refused, allowed, now, actions)
            else:
                self._queue.hold(unit)
                self._preemption.give_up((record,), actions)
            self._refuse(record, message, actions)
        else:
            unit.pods.clear()
            actions.append(self.bind(record))
            self._queue.wake_next(key)
        self._decided((record,), start)

    def _lost(
        self,
        unit: Unit,
        record: Record,
        refused: Evaluation,
        now: float,
        actions: list[Action],
    ) -> None:
        """Park a pod again whose room another took, and that may make none: what most tries are.

        Its owner knows why it waits; if that has changed meanwhile, `RefusalUpdates` says so.

        Args:
            unit: of the queue, of this pod alone.
            record: the pod.
            refused: the evaluation of its class, not brought up to date.
            now: seconds since the epoch.
            actions: where decisions go.
        """
        unit.attempts += 1
        self._queue.park(unit, record.key, now)
        self._quick_check.refused(unit, refused, nowhere=True)
        self._preemption.give_up((record,), actions)
        if record.refused_by in ((), (QUOTA,)):
            record.refused_by = refused.refused_by()
            self._refuse(record, refusal_message(refused), actions)

    def gang(self, state: GangState, now: float, actions: list[Action]) -> None:
        """Try a gang: enough of its pods for `minMember`, and as many more as fit."""
        if state.planning or state.clearing:
            return  # nothing is done before the plan is written; the answer comes soon
        start = self._timer() if self._timer else 0.0
        pods = in_turn(state.unit.pods.values())
        self._preemption.before(pods)
        lacking = state.lacking()
        if message := not_ready(state):
            self._queue.hold(state.unit)
            self._preemption.give_up(pods, actions)
            for record in pods:
                self._refuse(record, message, actions)
        else:
            self._place_gang(state, pods, lacking, now, actions)
        self._decided(pods, start)

    def bind(self, record: Record, together: str = "") -> Bind:
        """Return the Binding of a placed pod, with its GPUs; it is on the way from now on.

        Args:
            record: the pod's.
            together: a name for pods none of which is bound before all have their storage.
        """
        record.in_flight = True
        record.awaits_storage = bool(record.claims or together)
        self._preemption.gone(record.pod.uid)
        patience = 0.0
        if record.claims:
            patience = max(p.patience for p in self._profiles[record.pod.scheduler].claimers)
        assignment = self._assignment(record)
        return Bind(record.pod, record.node, assignment, record.claims, patience, together)

    def _decided(self, records: Sequence[Record], start: float) -> None:
        """Count an attempt at these pods that began at the timer's `start`."""
        seconds = 0.0
        if self._timer:
            seconds = (self._timer() - start) / len(records)
        for record in records:
            record.tries += 1
            if self._timer:
                self.seconds.append(seconds)
                self._counters.algorithm.observe(seconds)
            if record.state is State.PENDING:
                self._counters.attempt("unschedulable", record.pod.scheduler, seconds)

    def _place_gang(
        self,
        state: GangState,
        pods: list[Record],
        lacking: int,
        now: float,
        actions: list[Action],
    ) -> None:
        gang = state.gang
        assert gang is not None
        if lacking and (gap := resource_gap(state, self._accounts.columns)):
            text = f"resource gap: its minResources want {gap}"
            text = untried(state.key, lacking, text)
            self._preemption.give_up(pods, actions)
            self._put_off(state, pods, None, text, now, actions)
            return
        # A plan counts only while it is being carried out, by us or by a leader that died over it.
        plan = gang.plan if state.bound() else {}
        placement = GangPlacement(self._context, self._admission, state, pods, now)
        held = self._preemption.held_for(pods)
        outcome = placement.place(lacking, {**held, **plan})
        if outcome.refusal and held:
            outcome = placement.place(lacking, plan)
        if outcome.refusal:
            message = outcome.refusal
            free = [r for r in pods if not (r.pod.problem or self._admission.refuse([r]))]
            if free and self._admission.refuse(free[: max(1, lacking)]):
                free = []  # each alone is within the quota, together they are not
            rows = [self._admission.allowed(state.unit, r, now) for r in free]
            message += self._preemption.for_gang(state, free, rows, lacking, now, actions)
            self._put_off(state, pods, _only_class(pods), message, now, actions)
            return
        state.failing_since = state.failed_at = 0.0
        placed = placement.statement.placed
        for record in placed:
            state.unit.pods.pop(record.pod.uid)
            self._preemption.gone(record.pod.uid)
        if outcome.left:
            self._queue.park(state.unit, _only_class(r for r, _ in outcome.left), now)
            self._preemption.give_up((r for r, _ in outcome.left), actions)
            for record, message in outcome.left:
                self._refuse(record, message, actions)
        if lacking > 1 and not plan:
            state.planning = True
            new = {r.pod.name: _planned(r, self._assignment(r)) for r in placed}
            actions.append(WritePlan(gang, new))
        else:
            actions.extend(self.bind(r) for r in placed)

    def _place(
        self, record: Record, profile: Profile, allowed: Mask | None, now: float
    ) -> Evaluation | None:
        """Place a pod where room is held for it, or else on its best node."""
        statement = Statement(self._accounts, self._evaluations, now)
        node = self._preemption.nominations.node(record.pod)
        row = self._accounts.columns.row_of.get(node, -1)
        may = row >= 0 and (allowed is None or allowed[row])
        if may and statement.place_on(record, profile, node):
            return None
        return statement.place(record, profile, allowed)

    def _put_off(
        self,
        state: GangState,
        pods: Sequence[Record],
        key: ClassKey | None,
        message: str,
        now: float,
        actions: list[Action],
    ) -> None:
        """Let the gang wait until something changes that may help this class; None = anything."""
        unit = state.unit
        unit.attempts += 1
        state.failed(now)
        state.line_up(self._profiles)
        self._queue.park(unit, key, now)
        # One of them tells how many fit as soon as that changes, the others only what else is new.
        first = min(pods, key=lambda r: r.pod.name)
        for record in pods:
            self._refuse(record, message, actions, figures(message) if record is first else "")

    def _refuse(
        self, record: Record, message: str, actions: list[Action], numbers: str = ""
    ) -> None:
        news = without_counts(message) + numbers
        if record.message != news:
            record.message = news
            actions.append(Report(record.pod, "FailedScheduling", message))

    def _assignment(self, record: Record) -> PodGpuAssignment:
        demand = record.pod.spec.gpu
        if demand is None or not record.bookings:
            return ()
        return assign(demand, record.bookings, self._accounts.devices.gpus[record.row])


def _only_class(pods: Iterable[Record]) -> ClassKey | None:
    """Return the class of the pods; None if they differ, so that any change may help one."""
    classes = {r.key for r in pods}
    return classes.pop() if len(classes) == 1 else None


def _planned(record: Record, assignment: PodGpuAssignment) -> Planned:
    return record.node, {name: [share.index for share in shares] for name, shares in assignment}

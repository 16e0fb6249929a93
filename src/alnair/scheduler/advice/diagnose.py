"""Why a pod waits and what would help: counts, near misses, verified changes, gang and queue.

It tries the pod many times on the engine's own books, each time undone, between two steps of the
engine; so what it says is what the scheduler would do.
"""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from alnair.model.near_names import near
from alnair.model.plurals import counted
from alnair.scheduler.advice.change_search import ChangeSearch
from alnair.scheduler.advice.diagnosis import Diagnosis, GangDiagnosis, QueueDiagnosis, Stage
from alnair.scheduler.advice.placed import placement
from alnair.scheduler.advice.refusals import candidates, judge, predicates
from alnair.scheduler.advice.trial import Trial, Verdict, tried_with
from alnair.scheduler.advice.unmet_labels import unmet_labels
from alnair.scheduler.engine.view import View
from alnair.scheduler.queue.unit import Place
from alnair.scheduler.state.accounts import Record, State

_PLACES: Final = {
    Place.ACTIVE: "active",
    Place.BACKOFF: "backoff",
    Place.PARKED: "unschedulable",
    Place.NOT_QUEUED: "",
}
_SETTLED: Final[dict[State, Stage]] = {
    State.ASSUMED: "binding",
    State.BOUND: "bound",
    State.FINISHED: "finished",
}


def find(view: View, namespace: str, name: str) -> Record | None:
    """Return what the engine knows of a pod by this name."""
    for record in view.pods.values():
        if (record.pod.namespace, record.pod.name) == (namespace, name):
            return record
    return None


def diagnose(view: View, record: Record, now: float) -> Diagnosis:
    """Return why the pod is where it is, and what would help.

    Args:
        view: of an engine between two steps; the engine is as before afterwards.
        record: of the pod.
        now: seconds since the epoch.
    """
    pod = record.pod
    known = Diagnosis(f"{pod.namespace}/{pod.name}", pod.scheduler, "waiting")
    if record.state in _SETTLED:
        stage = _SETTLED[record.state]
        known = replace(known, stage=stage, node=record.node or pod.node, since=record.placed_at)
        return replace(known, placement=placement(view, record, now))
    if pod.deleting:
        return replace(known, stage="deleting", message="the pod is being deleted")
    known = replace(known, nodes=len(view.cluster.columns))
    if pod.gated:
        return replace(known, stage="gated", waits_for=("its scheduling gates to be removed",))
    if pod.problem:
        return replace(known, stage="refused", message=pod.problem, waits_for=("a changed pod",))
    together = tried_with(view, record)
    with view.experiment(now, together) as experiment:
        trial = Trial(view, experiment, record, together)
        return _Waiting(view, trial, record, now).result(known)


class _Waiting:
    """The diagnosis of a pod that waits for a node."""

    def __init__(self, view: View, trial: Trial, record: Record, now: float) -> None:
        self._view = view
        self._trial = trial
        self._record = record
        self._now = now
        self._state = view.gang_of(record)

    def result(self, known: Diagnosis) -> Diagnosis:
        """Return the diagnosis."""
        verdict = self._trial.verdict()
        with self._trial.one_by_one() as (fit, left):
            blocked = self._named(left[0]) if left else self._record
        missing = self._missing_members()
        spec = blocked.spec
        profile = self._view.profiles[blocked.pod.scheduler]
        cluster = self._view.cluster
        known = replace(
            known,
            message=missing or verdict.message or "it fits, and is to be tried",
            fits=verdict.fits and not missing,
            node=verdict.node if verdict.fits and not missing else "",
            gang=self._gang(fit, blocked if left else None),
            queue=self._queue(),
        )
        refusal = next((r for p in profile.pre_filters if (r := p.pre_filter(spec))), None)
        if refusal:
            stage: Stage = "refused"
            return replace(known, stage=stage, message=refusal.text, waits_for=("a changed pod",))
        with self._trial.one_by_one(leave_out=blocked.pod.name):
            verdicts = judge(spec, profile, cluster)
            counted = predicates(verdicts, cluster)
            nearest = candidates(verdicts, spec, cluster)
        known = replace(
            known,
            predicates=tuple(counted),
            waits_for=tuple(self._waits_for(missing, verdict)),
            preemption=self._preemption(verdict),
        )
        if verdict.fits:
            return known
        search = ChangeSearch(self._trial, spec, profile, cluster, {p.plugin for p in counted})
        changes = search.singles(self._reserved_seconds())
        pairs = [] if changes else search.pairs()
        return replace(
            known,
            closest=tuple(nearest),
            changes=tuple(changes),
            tried=search.tried,
            all_tried=search.all_tried,
            pairs=tuple(pairs),
            pairs_tried=search.pairs_tried,
            all_pairs_tried=search.all_pairs_tried,
            unmet=tuple(unmet_labels(spec, cluster)),
        )

    def _named(self, name: str) -> Record:
        """Return a pod of the unit, the one whose reasons are told."""
        pods = self._state.unit.pods.values() if self._state else ()
        return next((record for record in pods if record.pod.name == name), self._record)

    def _missing_members(self) -> str:
        """Return what the gang lacks before any node is looked at, or an empty text."""
        state = self._state
        if state is None:
            return ""
        namespace, name = state.key
        if state.gang is None:
            there = {
                one.key[1] for one in self._view.gangs() if one.gang and one.key[0] == namespace
            }
            alike = ", ".join(near(name, there))
            hint = f"; did you mean {alike}?" if alike else ""
            return f"PodGroup {namespace}/{name} does not exist{hint}"
        if state.gang.problem:
            return f"PodGroup {namespace}/{name} cannot be read: {state.gang.problem}"
        lacking = state.lacking() - len(state.unit.pods)
        if lacking <= 0:
            return ""
        return f"gang {namespace}/{name}: {counted(lacking, 'more pod')} to be created"

    # --- gang and queue ---------------------------------------------------------------------------

    def _gang(self, fit: int, blocked: Record | None) -> GangDiagnosis | None:
        state = self._state
        if state is None:
            return None
        lacking = state.lacking()
        return GangDiagnosis(
            name="/".join(state.key),
            exists=state.gang is not None,
            min_member=state.min_member,
            pods=len(state.members),
            placed=len(state.placed()),
            lacking=lacking,
            fit=min(fit, lacking),
            blocked=blocked.pod.name if blocked else "",
        )

    def _queue(self) -> QueueDiagnosis | None:
        unit = self._view.unit_of(self._record)
        if unit is None or unit.place is Place.NOT_QUEUED:
            return None
        waiting = [u for u in self._view.units() if u.place is not Place.NOT_QUEUED]
        mine = (unit.sort_by_age, unit.order)
        return QueueDiagnosis(
            place=_PLACES[unit.place],
            position=1 + sum((u.sort_by_age, u.order) < mine for u in waiting),
            length=len(waiting),
            since=min(r.queued_at for r in unit.pods.values()),
            attempts=unit.attempts,
            until=unit.not_before if unit.not_before > self._now else None,
        )

    def _reserved_seconds(self) -> int:
        kept = self._view.reservation
        return int(kept.until - self._now) if kept else 0

    def _preemption(self, verdict: Verdict) -> str:
        if self._state is not None or verdict.fits:
            return ""
        return self._view.preemption_outlook(self._record, self._now)

    def _waits_for(self, missing: str, verdict: Verdict) -> Iterator[str]:
        state, queue = self._state, self._queue()
        if state and state.gang is None:
            yield f"the PodGroup {'/'.join(state.key)} to be created, or the pod's label to go"
        elif missing:
            yield missing
        if missing:
            return
        if state and (state.planning or state.clearing):
            yield "the plan of its gang to be written"
        node = self._view.nominated_node(self._record)
        if node:
            yield f"less important pods on {node} to leave, which it preempts"
        elif not verdict.fits:
            quota = self._view.quota_refusal(self._record)
            yield "its quota" if quota else "a change of the cluster that lets it fit"
        elif queue is None or queue.place != "active":
            yield "its turn"
        if queue and queue.until:
            yield f"its back-off, for {queue.until - self._now:.1f} s more"

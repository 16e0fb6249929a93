"""Decide on a waiting pod again, as it is or changed, and leave the books as they were.

It is the decision itself: the same statement, evaluations, quota and reservation; a gang is tried
whole, with all its pods of the changed kind changed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from alnair.model.workload import PodSpec
from alnair.scheduler.engine.experiment import Experiment
from alnair.scheduler.engine.view import View
from alnair.scheduler.gangs.gangs import GangState, in_turn
from alnair.scheduler.gangs.readiness import resource_gap
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.queue.unit import Unit
from alnair.scheduler.state.accounts import Record


class Verdict(msgspec.Struct, frozen=True):
    """What became of a try: the node where the pod would go, or why it (or its gang) would not."""

    fits: bool
    node: str = ""
    message: str = ""


def tried_with(view: View, record: Record) -> list[Record]:
    """Return the pods that are decided on together with this one, and it, in their order."""
    state = view.gang_of(record)
    others = state.unit.pods if state and state.gang and state.lacking() else {}
    return in_turn({**others, record.pod.uid: record}.values())


class Trial:
    """Tries one pod (and its gang) on the engine's books.

    Args:
        view: of the engine.
        experiment: in which the pods are tried.
        record: of the pod, pending.
        pods: those that are tried with it (`tried_with`).
    """

    def __init__(
        self, view: View, experiment: Experiment, record: Record, pods: Sequence[Record]
    ) -> None:
        self._experiment = experiment
        self._record = record
        self._pods = list(pods)
        self._columns = view.cluster.columns
        state = view.gang_of(record)
        self._gang: GangState | None = state if state and state.gang else None
        self._unit = view.unit_of(record) or Unit(record.pod.uid)

    @property
    def size(self) -> int:
        """How many pods one try places."""
        return len(self._pods)

    def verdict(
        self, old: PodSpec | None = None, new: PodSpec | None = None, time_limit: int = 0
    ) -> Verdict:
        """Return what becomes of the pod now, if pods of class `old` were of class `new`."""
        copies = [_copy(record, old, new, time_limit) for record in self._pods]
        mine = copies[self._pods.index(self._record)]
        if self._gang is not None:
            return self._gang_verdict(self._gang, copies, mine)
        with self._experiment.attempt() as (statement, _):
            message = self._place(statement, mine)
            return Verdict(not message, mine.node, message)

    @contextmanager
    def one_by_one(self, leave_out: str = "") -> Iterator[tuple[int, list[str]]]:
        """Have all pods placed that fit one after another: how many, and the names of the others.

        Args:
            leave_out: name of a pod that is not placed, so that one sees what it would meet.
        """
        left = []
        with self._experiment.attempt() as (statement, _):
            for record in self._pods:
                if record.pod.name == leave_out:
                    continue
                if self._place(statement, _copy(record)):
                    left.append(record.pod.name)
            yield len(statement.placed), left

    def _place(self, statement: Statement, record: Record) -> str:
        """Place a pod; returns why it cannot be, or an empty text."""
        admission = self._experiment.admission
        if message := record.pod.problem or admission.refuse([record]):
            return message
        allowed = admission.allowed(self._unit, record, self._experiment.now)
        profile = self._experiment.profiles[record.pod.scheduler]
        refused = statement.place(record, profile, allowed)
        return admission.why(refused, allowed) if refused else ""

    def _gang_verdict(self, state: GangState, pods: list[Record], mine: Record) -> Verdict:
        """Place the gang, and return what becomes of the pod."""
        lacking = state.lacking()
        if lacking and (gap := resource_gap(state, self._columns)):
            return Verdict(False, "", f"resource gap: the gang's minResources want {gap}")
        plan = state.gang.plan if state.gang and state.bound() else {}
        with self._experiment.gang_attempt(state, pods) as placement:
            # Of a gang that is not complete yet, those that are there.
            outcome = placement.place(min(lacking, len(pods)), plan)
            message = outcome.refusal or next((m for r, m in outcome.left if r is mine), "")
            return Verdict(not message, mine.node, message)


def _copy(
    record: Record,
    old: PodSpec | None = None,
    new: PodSpec | None = None,
    time_limit: int = 0,
) -> Record:
    """Return a record of the same pod that is nowhere in the books, changed if it is of `old`."""
    pod, spec = record.pod, record.spec
    if new is not None and spec == old:
        spec = new
        pod = replace(pod, spec=new, time_limit=time_limit or pod.time_limit)
    copy = Record(pod)
    copy.spec = spec
    copy.group = record.group
    copy.queued_at = record.queued_at
    return copy

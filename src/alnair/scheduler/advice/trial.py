"""Decide on a waiting pod again, as it is or changed, and leave the books as they were.

It is the decision itself: the same statement, evaluations, quota and reservation; a gang is tried
whole, with all its pods of the changed kind changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from alnair.model.workload import PodSpec
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.evaluation_cache import Evaluations
from alnair.scheduler.gangs.gangs import GangState
from alnair.scheduler.gangs.readiness import resource_gap
from alnair.scheduler.placement.gang_placement import Books, GangPlacement
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.preemption.preemption import Preemption
from alnair.scheduler.queue.unit import Unit
from alnair.scheduler.state.accounts import Record


class Verdict(msgspec.Struct, frozen=True):
    """What became of a try: the node where the pod would go, or why it (or its gang) would not."""

    fits: bool
    node: str = ""
    message: str = ""


class Trial:
    """Tries one pod (and its gang) on the engine's books.

    Args:
        engine: whose books and queue.
        record: of the pod, pending.
        now: seconds since the epoch.
    """

    def __init__(self, engine: Engine, record: Record, now: float) -> None:
        # Not the engine's evaluations: what is kept for the pods that really wait shall stay.
        evaluations = Evaluations(engine.accounts.cluster)
        self._books = Books(engine.accounts, evaluations, engine.profiles, engine.admission)
        self._now = now
        self._record = record
        state = engine.members.gang_of(record)
        self._gang: GangState | None = state if state and state.gang else None
        self._unit = engine.members.unit_of(record) or Unit(record.pod.uid)
        others = self._gang.unit.pods if self._gang and self._gang.lacking() else {}
        self._pods = sorted(
            {**others, record.pod.uid: record}.values(),
            key=lambda r: (-r.pod.priority, r.pod.created, r.pod.name),
        )

    @property
    def size(self) -> int:
        """How many pods one try places."""
        return len(self._pods)

    @contextmanager
    def respecting(self, preemption: Preemption) -> Iterator[None]:
        """Have the room booked that is held against these pods for those that preempted."""
        preemption.before(self._pods)
        try:
            yield
        finally:
            preemption.nominations.let_go()

    def verdict(
        self, old: PodSpec | None = None, new: PodSpec | None = None, time_limit: int = 0
    ) -> Verdict:
        """Return what becomes of the pod now, if pods of class `old` were of class `new`."""
        copies = [_copy(record, old, new, time_limit) for record in self._pods]
        mine = copies[self._pods.index(self._record)]
        if self._gang is None:
            statement = Statement(self._books.accounts, self._books.evaluations, self._now)
            message = self._place(statement, mine)
        else:
            statement, message = self._place_gang(self._gang, copies, mine)
        verdict = Verdict(not message, mine.node, message)
        statement.rollback()
        return verdict

    @contextmanager
    def one_by_one(self, leave_out: str = "") -> Iterator[tuple[int, list[str]]]:
        """Have all pods placed that fit one after another: how many, and the names of the others.

        Args:
            leave_out: name of a pod that is not placed, so that one sees what it would meet.
        """
        statement = Statement(self._books.accounts, self._books.evaluations, self._now)
        left = []
        try:
            for record in self._pods:
                if record.pod.name == leave_out:
                    continue
                if self._place(statement, _copy(record)):
                    left.append(record.pod.name)
            yield len(statement.placed), left
        finally:
            statement.rollback()

    def _place(self, statement: Statement, record: Record) -> str:
        """Place a pod; returns why it cannot be, or an empty text."""
        books = self._books
        if message := record.pod.problem or books.admission.refuse([record]):
            return message
        allowed = books.admission.allowed(self._unit, record, self._now)
        refused = statement.place(record, books.profiles[record.pod.scheduler], allowed)
        return books.admission.why(refused, allowed) if refused else ""

    def _place_gang(
        self, state: GangState, pods: list[Record], mine: Record
    ) -> tuple[Statement, str]:
        """Place the gang; returns why the pod found no place, or an empty text."""
        placement = GangPlacement(self._books, state, pods, self._now)
        lacking = state.lacking()
        if lacking and (gap := resource_gap(state, self._books.accounts.columns)):
            return placement.statement, f"resource gap: the gang's minResources want {gap}"
        plan = state.gang.plan if state.gang and state.bound() else {}
        # Of a gang that is not complete yet, those that are there.
        outcome = placement.place(min(lacking, len(pods)), plan)
        message = outcome.refusal or next((m for r, m in outcome.left if r is mine), "")
        return placement.statement, message


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

"""Evictions of our own pods: those that crossed with another scheduler's, and those that failed."""

from collections import deque
from collections.abc import Container
from typing import Final

from alnair.model.action import Action, Evict
from alnair.scheduler.engine.binding_conflicts import crossed
from alnair.scheduler.gangs.gangs import RETRY_SECONDS
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.preemption.preemption import Preemption
from alnair.scheduler.state.accounts import Record, State

#: Reason of evictions that end an over-commitment.
CROSSED: Final = "NodeCrossed"


class Evictions:
    """What is to be evicted, and asked for again if that failed.

    Args:
        context: what to decide from; pods of its profiles are ours.
        preemption: is told of who stays after all.
    """

    def __init__(self, context: EngineContext, preemption: Preemption) -> None:
        self._accounts = context.accounts
        self._members = context.members
        self._ours: Container[str] = context.profiles
        self._preemption = preemption
        #: Rows on which pods appeared that may have crossed with ours.
        self._suspects: set[int] = set()
        #: Evictions that failed: when to ask again, and for which pod.
        self._again: deque[tuple[float, str]] = deque()

    def suspect(self, row: int) -> None:
        """Note that a pod appeared on the row."""
        self._suspects.add(row)

    def follow(self, now: float, actions: list[Action]) -> None:
        """Evict what crossed, and ask again for what failed."""
        for row in self._suspects:
            for record in crossed(self._accounts, row, self._ours, now):
                record.evicting = CROSSED
                if record.state is State.BOUND:
                    actions.append(evict_crossed(record))
        self._suspects.clear()
        while self._again and self._again[0][0] <= now:
            record_now = self._accounts.records.get(self._again.popleft()[1])
            if record_now is not None and record_now.evicting == CROSSED:
                self._ask_again(record_now, actions)

    def next_try(self) -> float | None:
        """Return when an eviction is asked for again."""
        return self._again[0][0] if self._again else None

    def failed(self, uid: str, now: float) -> None:
        """Note that a pod could not be evicted."""
        record = self._accounts.records.get(uid)
        if record is None:
            return
        if record.evicting == CROSSED:
            self._again.append((now + RETRY_SECONDS, uid))
            return
        self._preemption.failed(record.node, now)
        self._stays(record)
        if state := self._members.gang_of(record):
            state.no_retry_before = now + RETRY_SECONDS

    def _ask_again(self, record: Record, actions: list[Action]) -> None:
        if record.state is not State.BOUND:
            return
        if record.row >= 0 and self._accounts.overcommitted(record.row):
            actions.append(evict_crossed(record))
        else:
            self._stays(record)

    def _stays(self, record: Record) -> None:
        """Note that a pod that was to be evicted may stay."""
        record.evicting = ""
        self._preemption.left(record.node)  # those who waited for it must look elsewhere
        if (state := self._members.gang_of(record)) and state.unit.pods:
            self._members.retry_gang(state)  # it counts again


def evict_crossed(record: Record) -> Evict:
    """Return the eviction of a pod that crossed with another scheduler's."""
    message = f"another scheduler placed a pod on {record.node} at the same moment"
    return Evict(record.pod, CROSSED, message)

"""Whether it is worth to try a unit that waits: much cheaper than a try."""

from collections.abc import Sequence

import numpy as np

from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.hopes import Hopes
from alnair.scheduler.queue.unit import ClassKey, Unit, WaitingClass
from alnair.scheduler.state.capacity import capacity


class QuickCheck:
    """Says who may fit, at one moment between decisions.

    Then no room is held for anybody, so what is held for the unit itself counts as free.

    Args:
        context: what decisions are made from.
    """

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._accounts = context.accounts
        self._profiles = context.profiles
        self._hopes = Hopes(context)
        self._now = 0.0
        #: How many pods of a class fit, see `_room_for`.
        self._room: dict[tuple[ClassKey, bool], float] = {}
        self._tried_in_vain = False
        #: By class that may fit on one node alone: its row, and as what it waited.
        self._only: dict[ClassKey, tuple[int, WaitingClass]] = {}

    def begin(self, now: float) -> None:
        """Look anew, at this time (seconds since the epoch)."""
        self._hopes.follow()
        self._now = now
        self._room.clear()
        self._tried_in_vain = False

    def end(self) -> None:
        """Note that decisions are over, and that what was seen is of the past."""
        self._only.clear()

    def is_gone(self, key: ClassKey) -> bool:
        """Return whether the one node that had room for a class is known to have it no more.

        Between `begin` and `end` nodes only get fuller, so no other one has.
        """
        only = self._only.get(key) if self._only else None
        if only is None:
            return False
        row, waiting = only
        return self._hopes.lacks(waiting, row) or self._compiled(key).accepts_alone(row) is False

    def hopeful(self, classes: Sequence[WaitingClass]) -> list[WaitingClass]:
        """Return those of these classes that are not known to fit nowhere."""
        return self._hopes.of(classes)

    def may_fit(self, key: ClassKey, unit: Unit) -> bool:
        """Return whether to try a unit of this class: all that it lacks at once may find room."""
        state = self._context.members.gang_of(next(iter(unit.pods.values()))) if unit.gang else None
        needed = max(1, state.lacking()) if state is not None else 1
        room = self._room.get((key, needed > 1))
        if room is None:
            room = self._room[key, needed > 1] = self._room_for(key, unit, many=needed > 1)
        if state is None or not 0 < room < needed:
            return room >= needed
        state.found_no_room(self._now, self._profiles)
        # One at each look is tried in vain, in turn, so that owners are told the reasons of today.
        tried, self._tried_in_vain = self._tried_in_vain, True
        return not tried

    def refused(self, unit: Unit, evaluation: Evaluation, *, nowhere: bool) -> None:
        """Note that a lone pod was tried and is parked.

        Args:
            unit: of the queue.
            evaluation: of its class.
            nowhere: every node alone refuses it.
        """
        if unit.waiting is not None:
            self._hopes.refused(unit.waiting, evaluation, nowhere=nowhere)

    def _room_for(self, key: ClassKey, unit: Unit, *, many: bool) -> float:
        """Return how many pods of a class fit, at most; at most 1 unless `many` may be needed."""
        _, spec = key
        counting = self._accounts.usage.counting
        if counting and self._context.quotas.refuse(spec.namespace, dict(spec.requests)):
            return 0
        if unit.waiting is not None and not self._hopes.found(unit.waiting):
            return 0
        if not many and unit.waiting is not None:
            row = self._hopes.only_row(unit.waiting)
            if row is not None and (room := self._room_on(row, key, unit.waiting)) is not None:
                return room
        evaluation = self._context.evaluate(key)
        if evaluation.refusal is not None:
            return 0
        if evaluation.best() is None:
            self._give_up(unit, evaluation)
            return 0
        if not many:
            return 1
        rows = np.flatnonzero(evaluation.possible())
        return float(capacity(spec, self._accounts.cluster, rows).sum())

    def _room_on(self, row: int, key: ClassKey, waiting: WaitingClass) -> float | None:
        """Return whether one pod of a class fits on the row that it hopes for; None = unknown."""
        evaluation = self._compiled(key)
        accepted = None if evaluation.refusal else evaluation.accepts_alone(row)
        if accepted is None:
            return None
        if accepted:
            self._only[key] = row, waiting
            return 1
        self._hopes.lose(waiting, evaluation)
        return 0

    def _compiled(self, key: ClassKey) -> Evaluation:
        scheduler, spec = key
        return self._context.evaluations.compiled(spec, self._profiles[scheduler])

    def _give_up(self, unit: Unit, evaluation: Evaluation) -> None:
        # Where every node alone refuses, only a change of a node helps.
        if unit.waiting is not None and not evaluation.possible().any():
            self._hopes.lose(unit.waiting, evaluation)

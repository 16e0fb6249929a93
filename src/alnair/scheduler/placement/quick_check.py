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
        hopes: of the classes that wait.
    """

    def __init__(self, context: EngineContext, hopes: Hopes) -> None:
        self._context = context
        self._accounts = context.accounts
        self._profiles = context.profiles
        self._hopes = hopes
        self._now = 0.0
        #: How many pods of a class fit, see `_room_for`.
        self._room: dict[tuple[ClassKey, bool], float] = {}
        self._tried_in_vain = False

    def begin(self, now: float) -> None:
        """Look anew, at this time (seconds since the epoch)."""
        self._hopes.follow()
        self._now = now
        self._room.clear()
        self._tried_in_vain = False

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

    def _room_for(self, key: ClassKey, unit: Unit, *, many: bool) -> float:
        """Return how many pods of a class fit, at most; at most 1 unless `many` may be needed."""
        _, spec = key
        counting = self._accounts.usage.counting
        if counting and self._context.quotas.refuse(spec.namespace, dict(spec.requests)):
            return 0
        if unit.waiting is not None and not self._hopes.found(unit.waiting):
            return 0
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

    def _give_up(self, unit: Unit, evaluation: Evaluation) -> None:
        # Where every node alone refuses, only a change of a node helps.
        if unit.waiting is not None and not evaluation.possible().any():
            self._hopes.lose(unit.waiting, evaluation)

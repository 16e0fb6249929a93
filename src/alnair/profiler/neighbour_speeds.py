"""How much slower a training is beside the pods on its GPUs than it was alone, from its own steps.

What counts is a stretch between two looks over which the neighbours were the same. Without such
stretches of both kinds nothing is said: no other job's figures stand in for its own.
"""

import statistics
from collections import deque
from typing import Final

#: Stretches of each kind that are kept, and that are needed.
_MOST: Final = 20
_LEAST: Final = 3
#: A stretch is no shorter than this, seconds: else it is a step or two.
_SHORTEST: Final = 10.0


class NeighbourSpeeds:
    """Follows one training."""

    def __init__(self) -> None:
        self._alone: deque[float] = deque(maxlen=_MOST)
        self._beside: deque[float] = deque(maxlen=_MOST)
        self._neighbours: frozenset[str] = frozenset()
        self._last: tuple[float, float] | None = None

    def add(self, at: float, done: float, neighbours: frozenset[str], since: float) -> None:
        """Take how far it is.

        Args:
            at: When it did its last step, seconds since the epoch.
            done: Steps by then.
            neighbours: Who is on its GPUs.
            since: Since when they are just these.
        """
        if neighbours and neighbours != self._neighbours:
            self._beside.clear()  # others slow it down by another factor
        self._neighbours = neighbours or self._neighbours
        last = self._last
        if last is not None and done > last[1] and at - last[0] < _SHORTEST:
            return  # with the next
        self._last = at, done
        if last is None or done <= last[1] or last[0] < since:
            return
        rates = self._beside if neighbours else self._alone
        rates.append((done - last[1]) / (at - last[0]))

    def slowdown(self) -> float | None:
        """Return its steps' time beside its last neighbours over that alone; None: not known."""
        if min(len(self._alone), len(self._beside)) < _LEAST:
            return None
        return statistics.median(self._alone) / statistics.median(self._beside)

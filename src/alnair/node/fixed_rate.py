"""A beat that neither drifts nor catches up: what is missed is counted."""

import math


class FixedRate:
    """Beats at the beginning and every so often after it.

    Args:
        every: Seconds between beats.
        now: Seconds of the clock that `rest` is told of, too.

    Attributes:
        skipped: Beats that came while the work of an earlier one was not done.
    """

    def __init__(self, every: float, now: float) -> None:
        self._every = every
        self._next = now
        self.skipped = 0

    def rest(self, now: float) -> float:
        """Return how long to wait for the next beat."""
        self._next += self._every
        missed = max(0, math.ceil((now - self._next) / self._every))
        self._next += missed * self._every
        self.skipped += missed
        return self._next - now

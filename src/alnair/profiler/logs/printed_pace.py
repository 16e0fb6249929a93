"""Progress of a log without times, from the rates that it prints."""

import statistics

from alnair.profiler.logs.position import Position
from alnair.profiler.progress.tracker import Progress

#: Printed rates are means already: the last few are enough.
_FEW = 5
#: An interval is never narrower than this part of the remaining time, to each side.
_LEAST = 0.1


class PrintedPace:
    """Remembers the last few printed times of one step; breaks are not known to it."""

    def __init__(self) -> None:
        self._last: list[float] = []
        self._position: Position | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds of one step, None before they were printed."""
        if len(self._last) < _FEW:  # the first ones are slow
            return self._last[-1] if self._last else None
        return statistics.median(self._last)

    def add(self, seconds: float | None) -> None:
        """Take the time of a step as it is printed, if it is."""
        if seconds is not None:
            self._last = [*self._last[1 - _FEW :], seconds]

    def be_at(self, position: Position) -> None:
        """Take where the training is."""
        self._position = position

    def estimate(self, _now: float | None = None) -> Progress | None:
        """Return the progress; None before there is any. The time now says nothing here."""
        at = self._position
        if at is None:
            return None
        each = self.seconds if at.unit != "sample" else None
        if at.total is None:
            return Progress(at.done, step_seconds=each)
        fraction = min(1.0, at.done / at.total)
        if each is None:
            return Progress(at.done, at.total, fraction)
        left = max(0.0, at.total - at.done)
        seen = self._last if len(self._last) == _FEW else [each]
        return Progress(
            at.done,
            at.total,
            fraction,
            each,
            eta_s=left * each,
            eta_low_s=left * min(*seen, (1 - _LEAST) * each),
            eta_high_s=left * max(*seen, (1 + _LEAST) * each),
        )

"""Progress and remaining time of one job."""

import math
from typing import Final

import msgspec

from alnair.profiler.progress.breaks import Break, Breaks
from alnair.profiler.progress.forecasts import Forecasts
from alnair.profiler.progress.pace import FEW, Interval, Pace

#: The true time is within the interval in about this part of the cases (benchmarks/eta.py).
COVERAGE: Final = 0.8
#: Standard deviations to each side for that, were the errors normal.
_DEVIATIONS = 1.28
#: What no model knows, as a part of the remaining time: one standard deviation.
_UNKNOWN = 0.03


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a job is. What cannot be known is None.

    Attributes:
        done: Steps (or epochs) done.
        total: How many there will be.
        fraction: Done of total, 0 to 1.
        step_seconds: Seconds of a usual step, without breaks.
        eta_s: Seconds until the last step is done, breaks included.
        eta_low_s: The time is between this...
        eta_high_s: ...and this, in about 80 of 100 cases.
        restarts: How often the count has gone back.
        at: When the last step was done, on the clock of the steps.
    """

    done: float
    total: float | None = None
    fraction: float | None = None
    step_seconds: float | None = None
    eta_s: float | None = None
    eta_low_s: float | None = None
    eta_high_s: float | None = None
    restarts: int = 0
    at: float | None = None


class ProgressTracker:
    """Learns from what is seen of one job; memory is bounded.

    The job may stop and go on from an earlier step, change its speed or the number of its steps
    (an elastic job that has grown), and pause between steps.
    """

    def __init__(self) -> None:
        self._pace = Pace()
        self._breaks = Breaks()
        self._begin: float | None = None
        self._at = self._done = 0.0
        self._total: float | None = None
        self._restarts = 0
        self._first: Interval | None = None
        self._is_first = True
        self._lately: list[bool] = []
        self._forecasts = Forecasts()
        self._worked = self._steps = 0.0

    def add(self, at: float, done: float, total: float | None = None) -> None:
        """Take an observation.

        Args:
            at: Seconds of any clock; earlier than the last one is taken for the last one.
            done: Steps done by then; fewer than before means that the job went back.
            total: How many there will be, as far as is known by now.
        """
        if total is not None and total > 0:
            self._total = total
        if self._begin is None:
            self._begin, self._at, self._done = done, at, done
            return
        if done < self._done:
            self._went_back(at, done)
            return
        if done == self._done:
            return  # the time until the next step counts in full then
        raw = Interval(max(0.0, at - self._at), done - self._done)
        self._at, self._done = max(at, self._at), done
        if self._is_first:
            # The first step after a start compiles, fills caches, and is no step like others.
            self._is_first = False
            self._first = self._first or raw
            return
        self._learn(raw)

    def _learn(self, raw: Interval) -> None:
        excess = self._pace.excess(raw)
        if excess:
            self._breaks.add(Break(self._done - raw.steps, excess))
        self._lately = [*self._lately[1 - FEW :], excess > 0]
        if self._pace.add(raw, excess):
            self._breaks.forget_last(sum(self._lately))
            self._lately = []
        self._worked += raw.seconds
        self._steps += raw.steps
        if self._total is not None and self._forecasts.is_due(self._steps):
            left = self._total - self._done
            if left > 0:
                paces = tuple(max(eta / left, 1e-9) for eta in self._ways(left))
                self._forecasts.write(self._steps, self._worked, paces)

    def _ways(self, left: float) -> tuple[float, float]:
        """Return the remaining seconds by the pace of now with its breaks, and by the mean."""
        assert self._begin is not None
        pace = self._seconds() or 0.0
        ahead = self._breaks.ahead(self._begin, self._done, self._done + left, pace)
        mean = self._worked / self._steps if self._steps else pace
        return left * pace + ahead.seconds, left * mean

    def _went_back(self, at: float, done: float) -> None:
        self._restarts += 1
        self._forecasts.forget()
        self._breaks.forget_after(done)
        self._pace.interrupt()
        self._lately = []
        self._is_first = True
        self._at, self._done = max(at, self._at), done
        self._begin = min(self._begin or 0.0, done)

    def estimate(self, now: float | None = None) -> Progress | None:
        """Return the progress; None before there is any.

        Args:
            now: When it is asked; by default at the last step that was seen.
        """
        if self._begin is None:
            return None
        total, pace = self._total, self._seconds()
        fraction = None if total is None else min(1.0, self._done / total)
        usual = self._pace.median if len(self._pace) else pace
        told = Progress(self._done, total, fraction, usual, restarts=self._restarts, at=self._at)
        if total is None or pace is None:
            return told
        left = max(0.0, total - self._done)
        ahead = self._breaks.ahead(self._begin, self._done, total, pace)
        verdict = self._forecasts.verdict(self._steps, self._worked, left)
        eta = self._ways(left)[verdict.which] * self._pace.lately
        error = self._pace.error(left) if len(self._pace) else pace
        away = _DEVIATIONS * math.hypot(left * error, ahead.deviation, _UNKNOWN * eta)
        if verdict.error is not None:
            away = max(away / 2, eta * math.expm1(min(verdict.error, 5.0)), _UNKNOWN * eta)
        # A job that should have gone on by now does not come nearer to its end.
        waited = 0.0 if now is None else min(max(0.0, now - self._at), pace)
        return msgspec.structs.replace(
            told,
            eta_s=max(0.0, eta - waited),
            eta_low_s=max(0.0, eta - away - waited),
            eta_high_s=max(0.0, eta + away - waited),
        )

    def _seconds(self) -> float | None:
        """Return the seconds of one step, None before two were seen."""
        if len(self._pace):
            return self._pace.mean
        return self._first.pace if self._first else None

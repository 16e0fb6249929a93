"""Which way of forecasting has been right for this job so far.

A job's own past says whether its speed of now is the one to count on (an elastic job that has
grown) or a passing one (a busy machine). So forecasts are written down as the job goes on, and
compared with what came.
"""

import math

import msgspec

#: Forecasts are written down each time that the job has come so much further.
_FURTHER = 1.1
_MOST = 64
#: Fewer than these say nothing yet.
_FEW = 3
#: Part of the errors that the interval has to hold.
_PART = 0.8


class _Written(msgspec.Struct, frozen=True):
    done: float
    worked: float
    paces: tuple[float, ...]


class Verdict(msgspec.Struct, frozen=True):
    """The best of the ways.

    Attributes:
        which: Its number.
        error: Its usual error, as a logarithm; None while too little is known.
    """

    which: int
    error: float | None


class Forecasts:
    """Keeps what was forecast, in seconds per step up to the end, breaks included."""

    def __init__(self) -> None:
        self._written: list[_Written] = []

    def is_due(self, done: float) -> bool:
        """Tell whether it is time to write down what is forecast now.

        Args:
            done: Steps since the beginning.
        """
        return not self._written or done >= _FURTHER * self._written[-1].done

    def write(self, done: float, worked: float, paces: tuple[float, ...]) -> None:
        """Write down forecasts.

        Args:
            done: Steps since the beginning.
            worked: Seconds since then.
            paces: Seconds per step up to the end, by each way; all above 0.
        """
        self._written = [*self._written[1 - _MOST :], _Written(done, worked, paces)]

    def forget(self) -> None:
        """Forget all: the job has gone back, and what came since is no measure."""
        self._written = []

    def verdict(self, done: float, worked: float, left: float) -> Verdict:
        """Return which way has been best by now, the first one while that is not known.

        Args:
            done: Steps since the beginning.
            worked: Seconds since then.
            left: Steps ahead: forecasts over much shorter ways say little.
        """
        known = [
            one
            for one in self._written
            if done - one.done >= 0.2 * min(left, done) and worked > one.worked
        ]
        if len(known) < _FEW:
            return Verdict(0, None)
        errors = [
            [abs(math.log(pace * (done - one.done) / (worked - one.worked))) for pace in one.paces]
            for one in known
        ]
        sums = [math.fsum(of) for of in zip(*errors, strict=True)]
        best = min(range(len(sums)), key=lambda which: sums[which])
        own = sorted(error[best] for error in errors)
        return Verdict(best, own[min(len(own) - 1, int(_PART * len(own)))])

"""Breaks between steps, and how many are still to come."""

import itertools
import statistics

import msgspec

_MOST = 200
#: Breaks of one kind are alike within this factor.
_ALIKE = 2.0
#: How far gaps between breaks may be from their median, as a part of it, to be called regular.
_REGULAR = 0.25


class Break(msgspec.Struct, frozen=True):
    """A time without steps: after which step, and how long."""

    after: float
    seconds: float


class Ahead(msgspec.Struct, frozen=True):
    """Breaks still to come.

    Attributes:
        seconds: Of all of them.
        deviation: Standard deviation of that.
    """

    seconds: float
    deviation: float


class Breaks:
    """Remembers breaks; those of one length come again as they came before."""

    def __init__(self) -> None:
        self._all: list[Break] = []

    def add(self, one: Break) -> None:
        """Take a break."""
        self._all = [*self._all[1 - _MOST :], one]

    def forget_after(self, step: float) -> None:
        """Forget those beyond a step: the job has gone back there, and takes them again."""
        self._all = [one for one in self._all if one.after <= step]

    def forget_last(self, count: int) -> None:
        """Forget the last few: they were no breaks."""
        if count:
            del self._all[-count:]

    def ahead(self, begin: float, done: float, total: float, pace: float) -> Ahead:
        """Return what is to come between two steps.

        Args:
            begin: The step at which it was first seen.
            done: The step now.
            total: The last one.
            pace: Seconds of one step.
        """
        seconds = variance = 0.0
        for kind in self._kinds():
            count = _count(kind, begin, done, total, pace)
            lengths = [one.seconds for one in kind]
            usual = statistics.mean(lengths)
            seconds += count * usual
            spread = statistics.stdev(lengths) if len(kind) > 1 else usual / 2
            # Their number may be off by one, and all of them by the error of the median.
            variance += usual**2 * (0.3 if count else 0.0) + (count * spread) ** 2 / len(kind)
        return Ahead(seconds, variance**0.5)

    def _kinds(self) -> list[list[Break]]:
        """Group them by length."""
        kinds: list[list[Break]] = []
        last = 0.0
        for one in sorted(self._all, key=lambda one: one.seconds):
            if not kinds or one.seconds > _ALIKE * last:
                kinds.append([])
            kinds[-1].append(one)
            last = one.seconds
        return [sorted(kind, key=lambda one: one.after) for kind in kinds]


def _count(kind: list[Break], begin: float, done: float, total: float, pace: float) -> float:
    """Return how many breaks of a kind are to be expected."""
    last = kind[-1].after
    if len(kind) == 1:
        gap = last - begin
        if kind[0].seconds > gap * pace:
            return 0.0  # longer than all the work before: an outage, and no habit
    else:
        gaps = [b.after - a.after for a, b in itertools.pairwise(kind)]
        gap = statistics.median(gaps)
        away = statistics.median(abs(one - gap) for one in gaps)
        if away > _REGULAR * gap:
            return len(kind) * (total - done) / max(done - begin, 1e-9)
    if gap <= 0:
        return 0.0
    # None is waited for at the very end: the last step is the end.
    return max(0.0, -(-(total - last) // gap) - 1)

"""Ranks of a distributed training that are slower than they should be, a few steps after it began.

Ranks of one job do the same work on batches of the same size, so a rank is judged by its share of
the others' time, not by seconds: if all of them slow down, none is a straggler. Ranks may differ
all the time (other cards, other neighbours), so what counts is first of all a rank's own habit.
"""

import math
import statistics
from collections import deque
from collections.abc import Mapping

import msgspec

#: Steps of a rank from which its habit is learned, once there are enough of them.
_HABIT, _ENOUGH = 120, 20
#: So many of the last few steps must be slow: a single one is a garbage collection.
_LAST, _SLOW = 7, 6
#: A rank is slow by 12 % at least, and by this many standard deviations of its own.
_LEAST, _DEVIATIONS = math.log(1.12), 3.0
#: Beside the others, without a habit: by 30 %, and by this many deviations of all ranks.
_LEAST_BESIDE, _DEVIATIONS_BESIDE = math.log(1.3), 4.0
_MAD = 1.4826


class Straggler(msgspec.Struct, frozen=True):
    """A rank that is slow.

    Attributes:
        rank: Which one.
        since: The step, counted from 0, at which it was found.
        slowdown: Its time over what it should be: 1.5 is half as long again.
        from_start: Whether it has been slow beside the others since the beginning.
    """

    rank: int
    since: int
    slowdown: float
    from_start: bool = False


class _Rank:
    """One rank: logarithms of its time over the others', and whether it is slow now."""

    def __init__(self, last: int) -> None:
        self.habit: deque[float] = deque(maxlen=_HABIT)
        self.last: deque[float] = deque(maxlen=last)
        self.found: Straggler | None = None
        self._usual: tuple[float, float] | None = None

    @property
    def is_known(self) -> bool:
        return len(self.last) == self.last.maxlen

    def take(self, ratio: float) -> None:
        if self.is_known and self.found is None:
            self.habit.append(self.last[0])  # old enough not to be part of what begins now
            if len(self.habit) % 10 == 0 or len(self.habit) < _ENOUGH:
                self._usual = None
        self.last.append(ratio)

    def usual(self) -> tuple[float, float]:
        """Return the median of its habit, and its standard deviation, outliers left out."""
        if self._usual is None:
            median = statistics.median(self.habit)
            away = statistics.median(abs(one - median) for one in self.habit)
            self._usual = (median, _MAD * away)
        return self._usual


class StragglerDetector:
    """Follows the ranks of one job, step by step.

    Args:
        last: Steps by which a rank is judged.
        slow: How many of them must be slow; and fast, until it is slow no more. Where a time is
            already that of many steps, fewer will do.
    """

    def __init__(self, last: int = _LAST, slow: int = _SLOW) -> None:
        self._last, self._slow = last, slow
        self._ranks: dict[int, _Rank] = {}
        self._step = -1

    def add(self, times: Mapping[int, float]) -> list[Straggler]:
        """Take one step; return the ranks that are slow now.

        Args:
            times: Seconds of the rank's own work by rank, without waiting for the others. Where
                only utilisations are known, percent of time busy: who is waited for is the busiest.
                A rank that is missing is not judged.
        """
        self._step += 1
        known = {rank: time for rank, time in times.items() if time > 0 and math.isfinite(time)}
        for rank in self._ranks.keys() - known.keys():
            if rank not in times:
                del self._ranks[rank]  # it has ended, or the job has become smaller
        if len(known) > 1:
            for rank, ratio in _ratios(known).items():
                self._ranks.setdefault(rank, _Rank(self._last)).take(ratio)
            self._judge()
        return [one.found for _, one in sorted(self._ranks.items()) if one.found]

    def _judge(self) -> None:
        spread = None
        for rank, one in self._ranks.items():
            if not one.is_known:
                continue
            if len(one.habit) >= _ENOUGH or one.found:
                limit, normal = self._by_habit(one)
            else:
                spread = self._spread() if spread is None else spread
                limit, normal = max(_LEAST_BESIDE, _DEVIATIONS_BESIDE * spread), 0.0
            slow = sum(ratio - normal > limit for ratio in one.last)
            ratio = statistics.median(one.last) - normal
            if one.found is None and slow >= self._slow:
                is_first = len(one.habit) < _ENOUGH
                one.found = Straggler(rank, self._step, math.exp(ratio), is_first)
            elif one.found is not None and slow <= self._last - self._slow:
                one.found = None
            elif one.found is not None:
                one.found = msgspec.structs.replace(one.found, slowdown=math.exp(ratio))

    def _by_habit(self, one: _Rank) -> tuple[float, float]:
        """Return the limit, and what is normal: where it has always been slow, the others' time."""
        if one.found is not None and one.found.from_start:
            return _LEAST_BESIDE, 0.0
        median, spread = one.usual()
        return max(_LEAST, _DEVIATIONS * spread), median

    def _spread(self) -> float:
        """Return the standard deviation among the ranks, outliers left out."""
        return _MAD * statistics.median(
            abs(statistics.median(o.last)) for o in self._ranks.values()
        )


def _ratios(times: Mapping[int, float]) -> dict[int, float]:
    """Return the logarithm of each rank's time over the median of the others'."""
    ordered = sorted(times, key=lambda rank: times[rank])
    middle, is_odd = divmod(len(ordered) - 1, 2)
    found = {}
    for place, rank in enumerate(ordered):
        above = times[ordered[middle + (place <= middle)]]
        below = above if is_odd else times[ordered[middle - 1 + (place <= middle - 1)]]
        found[rank] = math.log(times[rank] / ((above + below) / 2))
    return found

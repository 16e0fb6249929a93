"""The time of one step, without breaks: of now, not of what was before a job changed its size."""

import math
import statistics

import msgspec

#: Intervals that are kept; when there are more, neighbours are merged.
MOST_INTERVALS = 256
#: So many intervals in a row tell of a new pace, or of the spread of the old one.
FEW = 8
#: From the median absolute deviation to the standard deviation of a normal distribution.
_MAD = 1.4826
#: A pace is a new one if it differs by this part of the old one at least.
_LEAST_CHANGE = 0.1


class Interval(msgspec.Struct):
    """Time that passed while a job went on: seconds and steps, breaks taken out."""

    seconds: float
    steps: float

    @property
    def pace(self) -> float:
        """Seconds per step."""
        return self.seconds / self.steps


class Pace:
    """Learns the seconds of one step from intervals; memory is bounded."""

    def __init__(self) -> None:
        self._all: list[Interval] = []
        self._begun: Interval | None = None
        self._least_steps = 0.0
        self._last: list[Interval] = []
        self._usual: tuple[float, float] | None = None

    def __len__(self) -> int:
        return len(self._all)

    @property
    def is_known(self) -> bool:
        """Whether enough was seen to tell a break from a slow step."""
        return len(self._all) >= FEW

    @property
    def median(self) -> float:
        """Seconds of one step, in half of the intervals less."""
        return self._usually()[0]

    @property
    def spread(self) -> float:
        """Standard deviation of an interval's seconds per step, outliers left out."""
        return self._usually()[1]

    @property
    def mean(self) -> float:
        """Seconds of one step, over all that was seen at this pace."""
        steps = math.fsum(one.steps for one in self._all)
        return math.fsum(one.seconds for one in self._all) / steps

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        if len(self._all) < 2:
            return self.mean
        return statistics.stdev([one.pace for one in self._all]) / math.sqrt(len(self._all))

    def excess(self, raw: Interval) -> float:
        """Return the seconds of it that must have been a break; 0 where it was none."""
        if not self.is_known:
            return 0.0
        median, spread = self._usually()
        more = raw.seconds - raw.steps * median
        # The fewer steps an interval has, the less they make up for one another.
        spread *= math.sqrt(max(1.0, self._least_steps / raw.steps))
        usual = max(5 * spread * raw.steps, 0.5 * median * raw.steps, 2 * median)
        return more if more > usual else 0.0

    def add(self, raw: Interval, excess: float) -> bool:
        """Take an interval; return whether the pace has become another one with it.

        Args:
            raw: As it was seen.
            excess: Its part that was a break.
        """
        self._last = [*self._last[1 - FEW :], raw]
        if self._has_changed():
            self._all = list(self._last)
            self._begun, self._least_steps, self._usual = None, 0.0, None
            return True
        self._merge(Interval(raw.seconds - excess, raw.steps))
        return False

    def interrupt(self) -> None:
        """Forget the last few: what comes next does not follow them."""
        self._last = []
        self._begun = None

    def _has_changed(self) -> bool:
        if len(self._last) < FEW or len(self._all) < 2 * FEW:
            return False
        median, spread = self._usually()
        paces = sorted(one.pace for one in self._last)
        now = statistics.median(paces)
        # All but one on the same side: a pace, and not two breaks among eight intervals.
        alike = paces[1] > median if now > median else paces[-2] < median
        steps = statistics.median(one.steps for one in self._last)
        spread *= math.sqrt(max(1.0, self._least_steps / steps))
        least = max(_LEAST_CHANGE * median, 4 * spread / math.sqrt(FEW))
        return alike and abs(now - median) > least

    def _merge(self, one: Interval) -> None:
        if self._begun is not None:
            one = Interval(self._begun.seconds + one.seconds, self._begun.steps + one.steps)
        if one.steps < self._least_steps:
            self._begun = one
            return
        self._begun = None
        self._all.append(one)
        if len(self._all) % FEW == 0 or len(self._all) < 2 * FEW:
            self._usual = None
        if len(self._all) > MOST_INTERVALS:
            pairs = zip(self._all[::2], self._all[1::2], strict=False)
            self._all = [Interval(a.seconds + b.seconds, a.steps + b.steps) for a, b in pairs]
            self._least_steps = statistics.median(one.steps for one in self._all)
            self._usual = None

    def _usually(self) -> tuple[float, float]:
        if self._usual is None:
            paces = [one.pace for one in self._all]
            median = statistics.median(paces)
            away = statistics.median(abs(pace - median) for pace in paces)
            self._usual = (median, _MAD * away)
        return self._usual

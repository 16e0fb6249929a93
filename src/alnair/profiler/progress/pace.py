"""The time of one step, without breaks: of now, not of what was before a job changed its size."""

import math
import statistics

import msgspec

#: Intervals that are kept; when there are more, neighbours are merged.
MOST_INTERVALS = 256
#: So many intervals in a row tell of a new pace, or of the spread of the old one.
FEW = 5
#: From the median absolute deviation to the standard deviation of a normal distribution.
_MAD = 1.4826
#: A pace is a new one if its logarithm differs by this at least: a quarter.
_LEAST_CHANGE = 0.22
#: Intervals of late; chosen on four of the eight real logs of benchmarks/eta.py.
_LATE = 30
#: Parts into which the past is cut to see how far its mean can be trusted.
_BLOCKS = 8


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
    def mean(self) -> float:
        """Seconds of one step, over all that was seen at this pace."""
        steps = math.fsum(one.steps for one in self._all)
        return math.fsum(one.seconds for one in self._all) / steps

    @property
    def lately(self) -> float:
        """Half way, as a ratio, from the mean over all to that of the last intervals.

        On a busy machine either is wrong by chance, and what lies between them by less.
        """
        late = self._all[-_LATE:]
        if len(late) < FEW:
            return 1.0
        pace = math.fsum(one.seconds for one in late) / math.fsum(one.steps for one in late)
        return math.sqrt(max(pace, 1e-9) / max(self.mean, 1e-9))

    @property
    def median(self) -> float:
        """Seconds of a usual step: breaks too short to be told from steps do not count."""
        return self._usually()[0] if self.is_known else self.mean

    def error(self, ahead: float) -> float:
        """Return the standard error of the mean, as a forecast of the mean of the steps ahead.

        From means of blocks: steps near one another are alike, and many of them say little more
        than a few.
        """
        size = max(1, len(self._all) // _BLOCKS)
        blocks = [self._all[at : at + size] for at in range(0, len(self._all) - size + 1, size)]
        if len(blocks) < 2:
            return self.mean
        steps = [math.fsum(one.steps for one in block) for block in blocks]
        paces = [math.fsum(o.seconds for o in b) / n for b, n in zip(blocks, steps, strict=True)]
        own = 1 / len(blocks) + min(1.0, statistics.mean(steps) / max(ahead, 1e-9))
        return statistics.stdev(paces) * math.sqrt(own)

    def excess(self, raw: Interval) -> float:
        """Return the seconds of it that must have been a break; 0 where it was none."""
        if not self.is_known:
            return 0.0
        median, spread = self._usually()
        more = raw.seconds - raw.steps * median
        # The fewer steps an interval has, the less they make up for one another.
        spread *= math.sqrt(max(1.0, self._least_steps / raw.steps))
        most = max(math.exp(min(4 * spread, 9.0)), 1.5) * raw.steps * median
        return more if raw.seconds > most and more > 2 * median else 0.0

    def add(self, raw: Interval, excess: float) -> bool:
        """Take an interval; return whether the pace has become another one with it.

        Args:
            raw: As it was seen.
            excess: Its part that was a break.
        """
        self._last = [*self._last[1 - FEW :], raw]
        if self._has_changed():
            was = self._usually()[0]
            now = statistics.median(one.pace for one in self._last)
            self._all = [one for one in self._last if (one.pace - was) * (now - was) > 0]
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
        # Slower without exception: else it may be breaks. A break among faster steps is none.
        alike = paces[0] > median if now > median else paces[-2] < median
        steps = statistics.median(one.steps for one in self._last)
        spread *= math.sqrt(max(1.0, self._least_steps / steps))
        least = max(_LEAST_CHANGE, 4 * spread / math.sqrt(FEW))
        return alike and now > 0 and abs(math.log(now / median)) > least

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
        """Return the median pace, and the spread of the paces' logarithms, outliers left out.

        Logarithms, since steps vary by factors: now and then one takes three times as long, and
        none a negative time.
        """
        if self._usual is None:
            paces = [one.pace for one in self._all]
            median = max(statistics.median(paces), 1e-9)
            away = statistics.median(abs(math.log(max(one, 1e-9) / median)) for one in paces)
            self._usual = (median, _MAD * away)
        return self._usual

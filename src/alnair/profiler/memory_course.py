"""When a pod's GPU memory will be full, if it goes on growing as it did.

Split conformal prediction, as in `alnair.profiler.forecast`: by how much the memory grew over every
earlier time of the same length is known, and by how much it grew in all but a part of them is
counted on. No line is drawn through anything: memory that has stopped growing fills nothing.
"""

import math
from collections import deque
from typing import Final

import msgspec
import numpy as np

#: Moments that are kept: at one in half a minute, four hours.
LENGTH: Final = 480
#: In this part of such times it must have grown so much.
COVERAGE: Final = 0.8
#: Times that are looked ahead, seconds: each a quarter longer than the one before.
_HORIZONS: Final = tuple(60.0 * 1.25**power for power in range(19))
#: It must have grown by this part of the limit at all: less is noise.
_LEAST: Final = 0.01
#: A pause between two moments after which everything begins anew, seconds.
_GAP: Final = 600.0


class Filling(msgspec.Struct, frozen=True):
    """Memory that will be full.

    Attributes:
        seconds: Within this time.
        coverage: In what part of earlier times of this length it grew so much, at least.
    """

    seconds: float
    coverage: float


class MemoryCourse:
    """The memory of one pod over time."""

    def __init__(self) -> None:
        self._all: deque[tuple[float, float]] = deque(maxlen=LENGTH)

    def add(self, at: float, used: float) -> None:
        """Take what is in use at a moment: seconds of any clock, and an amount."""
        if self._all and not 0 < at - self._all[-1][0] <= _GAP:
            self._all.clear()
        self._all.append((at, used))

    def filling(self, limit: float) -> Filling | None:
        """Tell when it will reach a limit; None where that is not to be expected.

        Args:
            limit: In the unit of what is in use.
        """
        if len(self._all) < 2:
            return None
        times, used = np.array(self._all).T
        if not used[0] + _LEAST * limit < used[-1] < limit:
            return None
        for horizon in _HORIZONS:
            independent = int((times[-1] - times[0]) / horizon)
            held = min(0.9, independent / (independent + 1))
            if held < COVERAGE:
                return None  # and the longer ones have been seen less often still
            level = min(1.0, math.ceil((independent + 1) * held - 1e-9) / independent)
            begins = times[times <= times[-1] - horizon]
            grown = np.interp(begins + horizon, times, used) - used[: len(begins)]
            if used[-1] + np.quantile(grown, 1 - level) >= limit:
                return Filling(horizon, held)
        return None

"""How much a pod will use of its GPUs in the next half hour, where that can be said usefully."""

from collections import deque
from typing import Final

import numpy as np

from alnair.model.api_types import UtilizationAhead
from alnair.profiler.even_grid import Refusal
from alnair.profiler.forecast import forecast

#: Seconds that are looked ahead.
HORIZON: Final = 1800.0
_COVERAGE: Final = 0.8
#: Less than this is no promise worth writing down.
_LEAST_COVERAGE: Final = 0.6
#: Bounds further apart than this, in percent of a GPU, say nothing.
_USEFUL: Final = 25.0
#: Moments that are kept: at one in half a minute, four hours.
_LENGTH: Final = 480
_GAP: Final = 600.0


class UseAhead:
    """Follows one pod."""

    def __init__(self) -> None:
        self._all: deque[tuple[float, float]] = deque(maxlen=_LENGTH)

    def add(self, at: float, percent: float) -> None:
        """Take what it used lately: seconds of any clock, and percent of its GPUs."""
        if self._all and not 0 < at - self._all[-1][0] <= _GAP:
            self._all.clear()
        self._all.append((at, percent))

    def told(self) -> UtilizationAhead | None:
        """Return the mean of the time to come, between its bounds; None: nothing useful."""
        if len(self._all) < 2 or self._all[-1][0] - self._all[0][0] < 2 * HORIZON:
            return None
        times, percents = np.array(self._all).T
        found = forecast(times, percents, horizon_s=HORIZON, coverage=_COVERAGE, limit=100.0)
        if isinstance(found, Refusal) or found.coverage < _LEAST_COVERAGE:
            return None
        if found.mean_high - found.mean_low > _USEFUL:
            return None
        return UtilizationAhead(
            mean=round(found.mean),
            low=round(max(0.0, found.mean_low)),
            high=round(min(100.0, found.mean_high)),
            coverage=round(found.coverage, 2),
            horizon_s=HORIZON,
        )

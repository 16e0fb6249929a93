"""What a job will use in the next hour, with the part of hours for which that has held.

Split conformal prediction: the same forecast is made at every earlier moment, the errors are
known, and the one that the wanted part of them does not exceed is added to today's. No model of the
load is assumed; a load that does what it never did before is not foreseen. Hours that overlap are
not independent, so only as many errors count as hours fit into the past side by side, and no more
than what so many can show is promised.
"""

import math
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.profiler.even_grid import Grid, Refusal, even

Values = NDArray[np.float64]
HOUR: Final = 3600.0
#: A horizon is looked at in so many blocks.
_BLOCKS: Final = 12
#: How far a forecast may look back, in horizons; the one whose bound would have cost least is used.
_LOOK_BACKS: Final = (1, 3, 6)


class Forecast(msgspec.Struct, frozen=True):
    """Bounds for a metric in the time to come, in its unit.

    Attributes:
        horizon_s: How long that time is.
        coverage: In what part of such times each bound holds, at least; it is less than what was
            asked for if the past is too short to show that.
        most: The largest value stays below.
        mean: Of the time, as expected.
        mean_low, mean_high: The mean lies between.
        basis: What this rests on, in words.
    """

    horizon_s: float
    coverage: float
    most: float
    mean: float
    mean_low: float
    mean_high: float
    basis: str


def forecast(
    times: Values,
    values: Values,
    *,
    horizon_s: float = HOUR,
    coverage: float = 0.9,
    limit: float = math.inf,
) -> Forecast | Refusal:
    """Foresee a metric.

    Args:
        times: Seconds of each sample.
        values: What was sampled.
        horizon_s: How far to look ahead.
        coverage: Wanted part of times in which a bound shall hold, 0 to 1.
        limit: What the metric cannot exceed, such as 100 percent.

    Returns:
        The forecast; or why not: the past is shorter than twice the horizon.
    """
    if not 0 < coverage < 1 or not horizon_s > 0:
        raise ValueError(
            f"coverage {coverage} is not in (0, 1), or horizon {horizon_s} not above 0"
        )
    grid = even(times, values)
    if isinstance(grid, Refusal):
        return grid
    highest, means = _blocks(grid, horizon_s / _BLOCKS)
    past = len(highest) / _BLOCKS
    independent = int(past) - 1
    if independent < 1:
        return Refusal(
            f"{past * horizon_s:.0f} s of samples are too few to foresee {horizon_s:.0f} s: twice"
            " that is needed"
        )
    held = min(coverage, independent / (independent + 1))
    level = min(1.0, math.ceil((independent + 1) * held - 1e-9) / independent)
    back = _look_back(highest[: len(highest) // 2], level)
    recent, margin = _bound(highest, back * _BLOCKS, level)
    most = float(recent[-1]) + margin
    expected, error = _mean(means, level)
    lowest = min(0.0, float(grid.values[grid.seen].min()))
    return Forecast(
        horizon_s=horizon_s,
        coverage=held,
        most=min(limit, max(most, float(expected))),
        mean=expected,
        mean_low=min(expected, max(lowest, expected - error)),
        mean_high=min(limit, max(most, expected), expected + error),
        basis=(
            f"errors of the same forecast, from the last {back} of {past:.1f} times"
            f" {horizon_s:.0f} s, at every earlier moment"
        ),
    )


def _blocks(grid: Grid, length: float) -> tuple[Values, Values]:
    """Largest value and mean of each block of this many seconds; the last one ends with the series.

    A block in which nothing was seen is as the one before.
    """
    end = grid.start + grid.step * len(grid.values)
    count = int((end - grid.start) / length + 1e-9)
    start = end - count * length
    which = np.floor((grid.times - start) / length + 1e-9).astype(np.intp)
    used = grid.seen & (which >= 0) & (which < count)
    which, values = which[used], grid.values[used]
    highest = np.full(count, -np.inf)
    np.maximum.at(highest, which, values)
    counts = np.bincount(which, minlength=count)
    means = np.bincount(which, weights=values, minlength=count) / np.maximum(counts, 1)
    some = np.flatnonzero(counts)
    if not len(some):
        return highest[:0], means[:0]
    last = np.maximum.accumulate(np.where(counts > 0, np.arange(count), some[0]))
    return highest[last], means[last]


def _look_back(highest: Values, level: float) -> int:
    """How many horizons to look back: what would have cost least, told by the older half alone.

    By all of the past, it would be the one whose errors were small by luck.
    """
    costs = {}
    for back in _LOOK_BACKS:
        if (back + 1) * _BLOCKS <= len(highest):
            recent, margin = _bound(highest, back * _BLOCKS, level)
            costs[back] = float(recent.mean()) + margin
    return min(costs, key=lambda back: costs[back], default=_LOOK_BACKS[0])


def _bound(highest: Values, back: int, level: float) -> tuple[Values, float]:
    """The maximum of the last blocks at each moment, and what is added to it to make a bound."""
    recent = _rolling_max(highest, back)
    to_come = _rolling_max(highest, _BLOCKS)[back:]
    return recent, _quantile(to_come - recent[: len(to_come)], level)


def _mean(means: Values, level: float) -> tuple[float, float]:
    """Mean of the last horizon, and how far from it the next one's may be."""
    sums = np.concatenate(([0.0], np.cumsum(means)))
    recent = (sums[_BLOCKS:] - sums[:-_BLOCKS]) / _BLOCKS
    errors = np.abs(recent[_BLOCKS:] - recent[:-_BLOCKS])
    return float(recent[-1]), _quantile(errors, level)


def _rolling_max(values: Values, width: int) -> Values:
    rolled: Values = np.lib.stride_tricks.sliding_window_view(values, width).max(axis=1)
    return rolled


def _quantile(errors: Values, level: float) -> float:
    return float(np.quantile(errors, level, method="higher"))

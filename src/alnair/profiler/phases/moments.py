"""Several metrics on one grid of moments, each of them long enough to hold a whole cycle."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.profiler.cycles.detection import detect_on
from alnair.profiler.even_grid import Grid, Refusal, even

Values = NDArray[np.float64]
#: A longer time is looked at in longer moments.
_MOST_MOMENTS: Final = 1500
#: Moments shorter than so many samples have no deviation that means anything.
_SAMPLES_FOR_DEVIATION: Final = 4
#: So much of a sample must have been seen in a moment.
_LEAST_SEEN: Final = 0.25


class Moments(msgspec.Struct, frozen=True):
    """Metrics by moment.

    Attributes:
        start: Of the first moment, seconds.
        length: Of each, seconds.
        means: Metric → its mean in each moment.
        deviations: Metric → its deviation within each moment; none where a moment is a sample.
        period_s: Of the metric with the clearest cycle; None without one.
    """

    start: float
    length: float
    means: dict[str, Values]
    deviations: dict[str, Values]
    period_s: float | None


def moments(
    metrics: Mapping[str, tuple[Values, Values]],
    period_s: float | None = None,
    least_s: float = 0.0,
) -> Moments | Refusal:
    """Cut the time that all metrics have in common into moments.

    If there is a cycle, a moment is as long as one: within a training the mean is then steady.

    Args:
        metrics: Name → times in seconds of one clock, and values.
        period_s: Of the cycle, where it is known; 0: there is none. None: it is looked for.
        least_s: How long a moment is at least, seconds.
    """
    grids: dict[str, Grid] = {}
    for name, (times, values) in metrics.items():
        grid = even(times, values)
        if isinstance(grid, Refusal):
            return Refusal(f"{name}: {grid.reason}")
        grids[name] = grid
    if not grids:
        return Refusal("there is no metric")
    start = max(grid.start for grid in grids.values())
    end = min(grid.start + grid.step * len(grid.values) for grid in grids.values())
    period = _clearest(grids.values()) if period_s is None else period_s or None
    step = max(grid.step for grid in grids.values())
    length = max(step, period or 0.0, least_s, (end - start) / _MOST_MOMENTS)
    count = int((end - start) / length + 1e-9)
    if count < 2:
        return Refusal("the metrics have less than two moments in common")
    means, deviations = {}, {}
    for name, grid in grids.items():
        means[name], spread = _by_moment(grid, start, length, count)
        if length >= _SAMPLES_FOR_DEVIATION * grid.step:
            deviations[name] = spread
    return Moments(start, length, means, deviations, period)


def _clearest(grids: Iterable[Grid]) -> float | None:
    cycles = [one for one in map(detect_on, grids) if one.cyclic]
    clearest = max(cycles, key=lambda one: one.confidence, default=None)
    return clearest.period_s if clearest else None


def _by_moment(grid: Grid, start: float, length: float, count: int) -> tuple[Values, Values]:
    """Mean and deviation in each moment; where nothing was seen, those of the moment before.

    A sample stands for the step after it; where a moment ends within one, each has its share.
    """
    edges = (start + length * np.arange(count + 1, dtype=np.float64) - grid.start) / grid.step
    middle = float(grid.values[grid.seen].mean())
    around = np.where(grid.seen, grid.values - middle, 0.0)
    weights = _between(grid.seen.astype(np.float64), edges)
    some = np.maximum(weights, 1e-9)
    means = _between(around, edges) / some
    variances = np.maximum(_between(around**2, edges) / some - means**2, 0.0)
    last = np.maximum.accumulate(np.where(weights > _LEAST_SEEN, np.arange(count), 0))
    return means[last] + middle, np.sqrt(variances)[last]


def _between(values: Values, edges: NDArray[np.floating]) -> Values:
    """Sum of the values between each two edges, which may lie within a value."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    return np.diff(np.interp(edges, np.arange(len(sums)), sums))

"""The lengths of single cycles, where each of them shows an edge.

A correlation blurs where cycles differ; where their edges can be seen, each is measured for itself,
and a few that were disturbed, by a checkpoint or by a busy neighbour, do not matter.
"""

from typing import Final

import numpy as np

from alnair.profiler.cycles.autocorrelation import Values, without_trend
from alnair.profiler.even_grid import Grid

#: An edge goes from below to above the mean by this part of the deviation.
_HYSTERESIS: Final = 0.35
#: What is shorter than this part of a cycle is smoothed away.
_SMOOTHED: Final = 0.1
#: Two edges are a cycle if their distance is that of one by this part.
_CYCLE: Final = 0.4
#: So many cycles must be seen so, and this part of all that there are.
_LEAST: Final = 8
_LEAST_PART: Final = 0.7
#: What is averaged around the median: steps, and a part of it.
_SAMPLE: Final = 1.25
_AROUND: Final = 0.1


def median_between_edges(grid: Grid, steps: float) -> float | None:
    """The median length of a cycle, by its edges, in steps; None where they do not show.

    Args:
        grid: The series.
        steps: About the length.
    """
    flat = without_trend(grid.values, grid.seen, 2 * steps)
    smooth = _smooth(flat, round(_SMOOTHED * steps))
    threshold = _HYSTERESIS * float(smooth[grid.seen].std())
    found = [_intervals(side, threshold) for side in (smooth, -smooth)]
    # The sharper ones of rising and falling edges spread less.
    lengths = [one[np.abs(one / steps - 1) < _CYCLE] for one in found]
    enough = max(_LEAST, _LEAST_PART * float(grid.seen.sum()) / steps)
    usable = [one for one in lengths if len(one) >= enough]
    if not usable:
        return None
    best = min(usable, key=lambda one: float(np.subtract(*np.percentile(one, (75, 25)))))
    middle = float(np.percentile(best, 50, method="lower"))  # one of them
    # Edges lie on whole samples, so the median alone would: the mean around it does not.
    return float(best[np.abs(best - middle) <= max(_SAMPLE, _AROUND * middle)].mean())


def _smooth(values: Values, width: int) -> Values:
    return np.convolve(values, np.full(width, 1 / width), "same") if width > 1 else values


def _intervals(values: Values, threshold: float) -> Values:
    """Steps from each rising edge to the next one."""
    state = np.where(values > threshold, 1, np.where(values < -threshold, -1, 0))
    last = np.maximum.accumulate(np.where(state != 0, np.arange(len(state)), 0))
    state = state[last]
    at = np.flatnonzero((state[1:] == 1) & (state[:-1] == -1)) + 1
    before, after = values[at - 1], values[at]
    places: Values = at - (after - threshold) / np.maximum(after - before, 1e-300)
    return np.diff(places)

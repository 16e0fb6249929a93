"""The length of a cycle, once it is known about: by its edges, else by far hills."""

from typing import Final

import numpy as np

from alnair.profiler.cycles.autocorrelation import FINE, autocorrelation, hill, without_trend
from alnair.profiler.cycles.edges import median_between_edges
from alnair.profiler.even_grid import Grid

#: So many periods are followed at most; further on the cycles' own spread blurs them.
_FOLLOWED: Final = 12
#: A hill lower than this part of the first one is not followed.
_FADED: Final = 0.5
#: A length is measured in windows of so many cycles, and of so many samples at least.
_WINDOW: Final = 12
_LEAST_WINDOW: Final = 48
#: In a shorter cycle edges are not seen well enough.
_EDGES: Final = 5.0


def typical_length(grid: Grid, steps: float) -> float:
    """The median length of a cycle over the time, in steps; cycles may grow and shrink meanwhile.

    Args:
        grid: The series.
        steps: About the length.
    """
    by_edges = median_between_edges(grid, steps) if steps >= _EDGES else None
    if by_edges is not None:
        return by_edges
    width = max(_LEAST_WINDOW, round(_WINDOW * steps))
    if len(grid.values) < 2 * width:
        return _length(grid, steps)
    starts = range(0, len(grid.values) - width + 1, width // 2)
    lengths = sorted(_length(grid.part(low, low + width), steps) for low in starts)
    # Each window counts by its number of cycles.
    counted = np.cumsum([1 / length for length in lengths])
    return lengths[int(np.searchsorted(counted, counted[-1] / 2))]


def two_lengths(grid: Grid, steps: float) -> tuple[float | None, float]:
    """The length of a cycle in steps, once by its edges, None without any, and once by far hills.

    Args:
        grid: The series.
        steps: About the length.
    """
    return median_between_edges(grid, steps), _length(grid, steps)


def _length(grid: Grid, steps: float) -> float:
    """The length of a cycle where it hardly changes: more exact than one hill.

    The error of a hill's place is divided by its number; that of a hill between two steps, too.
    """
    flat = without_trend(grid.values, grid.seen, 2 * steps)
    most = min((_FOLLOWED + 0.6) * steps, 0.7 * len(grid.values))
    correlation = autocorrelation(flat, grid.seen, most)
    first = hill(correlation, steps, max(0.5, 0.2 * steps))
    if first is None:
        return steps
    length, height = first
    weights = sums = 0.0
    for number in range(1, int((len(correlation) - 2) / FINE / length) + 1):
        place = hill(correlation, number * length, max(0.5, 0.2 * length))
        if place is None or place[1] < _FADED * height:
            break
        # The lag of hill n is n lengths: a regression through the origin, by height.
        weights += place[1] * number**2
        sums += place[1] * number * place[0]
        length = sums / weights
    return length

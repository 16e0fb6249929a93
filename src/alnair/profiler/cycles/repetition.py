"""A period put to the test: does the series look like itself one to four periods later?"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from alnair.profiler.cycles.autocorrelation import autocorrelation, hill, without_trend
from alnair.profiler.even_grid import Grid

#: So many repetitions are looked at.
REPETITIONS: Final = 4
#: Shorter than two steps no cycle can be seen.
LEAST_STEPS: Final = 2.0
#: The trend is the mean over so many periods: what is slower is no part of the cycle.
_TREND: Final = 2.0
#: What a period needs of the score of the best one: if that is a small multiple, and if it is far.
_OF_MULTIPLE: Final = 0.8
_OF_FAR: Final = 0.4
_FAR: Final = 3.5


class Repetition(msgspec.Struct, frozen=True):
    """A period and how well the series repeats with it.

    Attributes:
        steps: The period, in steps of the grid.
        hills: Height of the autocorrelation's hill after one period, two, and so on; a hill that
            is not where it must be ends the list.
        score: Mean of the hills that there must be, 0 for each that is missing.
    """

    steps: float
    hills: tuple[float, ...]
    score: float


def repetition(grid: Grid, steps: float) -> Repetition | None:
    """Test a period; None if there is no hill near it, or none after two periods.

    Args:
        grid: The series.
        steps: The period, in steps; what is returned is the hill near it.
    """
    count = len(grid.values)
    flat = without_trend(grid.values, grid.seen, _TREND * steps)
    most = min((REPETITIONS + 0.6) * steps, 0.8 * count)
    correlation = autocorrelation(flat, grid.seen, most)
    first = hill(correlation, steps, max(0.5, 0.2 * steps))
    if first is None or first[0] < LEAST_STEPS:
        return None
    heights = [first[1]]
    period = first[0]
    for number in range(2, REPETITIONS + 1):
        later = hill(correlation, number * period, max(0.75, 0.15 * period))
        if later is None:
            break
        period = later[0] / number
        heights.append(later[1])
    if len(heights) < 2:
        return None
    expected = int(min(REPETITIONS, max(2, 0.7 * count / first[0])))
    score = float(sum(heights[:expected]) / expected)
    return Repetition(first[0], tuple(heights), score)


def fundamental(found: Sequence[Repetition]) -> Repetition | None:
    """The shortest period that repeats about as well as the best one.

    A cycle repeats after two and three periods, too, so the best score may be of a multiple. Much
    longer than an iteration are evaluations and checkpoints, which may repeat even better.
    """
    best = max(found, key=lambda one: one.score, default=None)
    if best is None or best.score <= 0:
        return None
    for one in sorted(found, key=lambda one: one.steps):
        share = _OF_MULTIPLE if best.steps < _FAR * one.steps else _OF_FAR
        if one.score >= share * best.score:
            return one
    return best


def finer(grid: Grid, found: Repetition) -> Repetition:
    """The half, third or quarter of a period if its hills are as high as those of the period.

    Both are measured on one autocorrelation, where noise lowers both alike.
    """
    count = len(grid.values)
    flat = without_trend(grid.values, grid.seen, _TREND * found.steps)
    most = min(2 * found.steps + 2, 0.8 * count)
    correlation = autocorrelation(flat, grid.seen, most)
    for parts in (4, 3, 2):
        steps = found.steps / parts
        if steps < LEAST_STEPS:
            continue
        hills = [
            hill(correlation, number * steps, max(0.5, 0.12 * steps))
            for number in range(1, 2 * parts + 1)
        ]
        heights = [one[1] for one in hills if one is not None]
        if len(heights) < len(hills):
            continue
        whole = np.arange(1, 2 * parts + 1) % parts == 0
        between, at = np.mean(np.array(heights)[~whole]), np.mean(np.array(heights)[whole])
        if between >= _OF_MULTIPLE * at:
            tested = repetition(grid, steps)
            if tested is not None and tested.score >= _OF_FAR * found.score:
                return tested
    return found

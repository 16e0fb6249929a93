"""Is a series cyclic, and with which period?

After AutoPeriod (Vlachos, Yu, Castelli, SDM 2005): the spectrum proposes periods, hills of the
autocorrelation confirm them. Two checks are ours: a hill must reach a floor that falls with the
number of cycles seen, as a few bursts always correlate somewhere, and it must come again after two
periods and more.
"""

import itertools
from typing import Final

import msgspec
import numpy as np

from alnair.profiler.cycles.cycle_length import typical_length
from alnair.profiler.cycles.repetition import Repetition, finer, fundamental, repetition
from alnair.profiler.cycles.spectrum import candidates
from alnair.profiler.even_grid import Grid, Refusal, Values, even

#: With fewer cycles than this a repetition may be chance.
LEAST_CYCLES: Final = 4.0
#: The floor of the score: for ever so long a series; falling with its length; with its cycles.
#: Chosen on made-up series of other seeds than those it is measured on (benchmarks/cycles.py).
_FLOOR: Final = 0.12
_FLOOR_BY_LENGTH: Final = 1.0
_FLOOR_BY_CYCLES: Final = 1.6
#: A spread of this part of the largest value is rounding, and no signal.
_FLAT: Final = 1e-6
#: A cycle is not believed beside a longer one, seen too few times, if it is so much fainter.
_FAINT: Final = 0.3
#: What is not cyclic as a whole is looked at in so many parts, of so many samples at least.
_PARTS: Final = 6
_LEAST_PART: Final = 60
_LEAST_PARTS: Final = 3
_SHARE_OF_PARTS: Final = 0.6
#: Their periods may differ from the middle one by this part.
_ALIKE: Final = 0.3


class Cyclicity(msgspec.Struct, frozen=True):
    """Whether a series is cyclic.

    Attributes:
        cyclic: Is it?
        period_s: Median length of a cycle, seconds; None if not cyclic.
        confidence: 0 to 1: how far the score is above its floor; of a series that is not cyclic,
            how far below.
        score: Mean height of the autocorrelation's hills after one to four periods, -1 to 1.
        floor: What the score must reach, for so many cycles.
        hills: Those heights.
        cycles: How many periods the series is long.
        amplitude: Half of the distance between the 5th and 95th percentile, in the series' unit.
        reason: In words.
    """

    cyclic: bool
    period_s: float | None
    confidence: float
    score: float
    floor: float
    hills: tuple[float, ...]
    cycles: float
    amplitude: float
    reason: str


def detect(times: Values, values: Values) -> Cyclicity | Refusal:
    """Look for a cycle.

    Args:
        times: Seconds of each sample, not falling; any rate, with gaps and jitter.
        values: What was sampled; NaN counts as not seen.

    Returns:
        What was found, or why nothing can be: too short, not numbers, too many gaps.

    Raises:
        ValueError: As `alnair.profiler.even_grid.even`.
    """
    grid = even(times, values)
    return grid if isinstance(grid, Refusal) else detect_on(grid)


def detect_on(grid: Grid) -> Cyclicity:
    """As `detect`, of a series that is on its grid already."""
    whole = _at_once(grid)
    return whole if whole.cyclic else _by_parts(grid) or whole


def _by_parts(grid: Grid) -> Cyclicity | None:
    """Look at parts of a series whose cycles grow or shrink, so that no two far ones are alike.

    Most parts must be cyclic, and with about the same period.
    """
    count = min(_PARTS, len(grid.values) // _LEAST_PART)
    if count < _LEAST_PARTS:
        return None
    bounds = np.linspace(0, len(grid.values), count + 1).astype(int)
    parts = [_at_once(grid.part(low, high)) for low, high in itertools.pairwise(bounds)]
    periods = ((one.period_s, one) for one in parts if one.period_s is not None)
    found = sorted(periods, key=lambda one: one[0])
    if len(found) < _LEAST_PARTS:
        return None
    period, middle = found[len(found) // 2]
    alike = [one for length, one in found if abs(length / period - 1) < _ALIKE]
    if len(alike) < max(_LEAST_PARTS, _SHARE_OF_PARTS * count):
        return None
    return msgspec.structs.replace(
        middle,
        cycles=sum(one.cycles for one in alike),
        reason=f"in {len(alike)} of {count} parts: {middle.reason}",
    )


def _at_once(grid: Grid) -> Cyclicity:
    known = grid.values[grid.seen]
    low, high = np.percentile(known, (5, 95))
    amplitude = float(high - low) / 2
    if np.ptp(known) <= _FLAT * max(float(np.abs(known).max()), _FLAT):
        return _not_cyclic(None, 0.0, 1.0, grid, "it is flat: all values are the same")
    tried = (repetition(grid, steps) for steps in candidates(grid.values, grid.seen))
    tested = [one for one in tried if one is not None]
    enough = [one for one in tested if len(grid.values) >= LEAST_CYCLES * one.steps]
    best, long = fundamental(enough), fundamental(tested)
    if long is not None and (best is None or best.score < _FAINT * long.score):
        best = long
    if best is None:
        return _not_cyclic(None, amplitude, 1.0, grid, "it never looks like itself again")
    best = finer(grid, best)
    cycles = len(grid.values) / best.steps
    floor = _FLOOR + _FLOOR_BY_LENGTH / len(grid.values) ** 0.5 + _FLOOR_BY_CYCLES / cycles
    if cycles < LEAST_CYCLES:
        reason = f"{cycles:.1f} repetitions of {best.steps * grid.step:.3g} s are too few to tell"
        return _not_cyclic(best, amplitude, floor, grid, reason)
    if best.score < floor:
        reason = (
            f"{best.steps * grid.step:.3g} s later it looks like itself by {best.score:.2f} of 1,"
            f" which {cycles:.0f} repetitions reach by chance: {floor:.2f} would tell"
        )
        return _not_cyclic(best, amplitude, floor, grid, reason)
    period = typical_length(grid, best.steps) * grid.step
    return Cyclicity(
        cyclic=True,
        period_s=period,
        confidence=_confidence(best.score - floor),
        score=best.score,
        floor=floor,
        hills=best.hills,
        cycles=cycles,
        amplitude=amplitude,
        reason=(
            f"every {period:.3g} s it looks like itself by {best.score:.2f} of 1,"
            f" {cycles:.0f} times; {floor:.2f} would do"
        ),
    )


def _not_cyclic(
    best: Repetition | None, amplitude: float, floor: float, grid: Grid, reason: str
) -> Cyclicity:
    return Cyclicity(
        cyclic=False,
        period_s=None,
        confidence=_confidence(floor - (best.score if best else 0.0)),
        score=best.score if best else 0.0,
        floor=floor,
        hills=best.hills if best else (),
        cycles=len(grid.values) / best.steps if best else 0.0,
        amplitude=amplitude,
        reason=reason,
    )


def _confidence(margin: float) -> float:
    """0.5 at the floor; 0.95 where it is passed by 0.3."""
    return float(0.5 + 0.5 * np.tanh(5 * margin))  # the logistic function, without overflow

"""A series as it was sampled, put on an even grid; what was not seen stays unseen."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model.plurals import counted

Values = NDArray[np.float64]
#: Nothing can be said of fewer samples.
LEAST_SAMPLES: Final = 16
#: A pause between two samples that is longer than this many steps is a gap: nothing fills it.
_GAP: Final = 2.5
#: So much of the time must have been seen.
_LEAST_SEEN: Final = 0.5


class Refusal(msgspec.Struct, frozen=True):
    """Nothing can be said of a series, and why: for a person."""

    reason: str


class Grid(msgspec.Struct, frozen=True):
    """A series with one value for each step.

    Attributes:
        start: Time of the first value, seconds.
        step: Seconds from one value to the next: the median of the sampled ones.
        values: What was sampled, linear in between; where nothing was seen, the last value before.
        seen: Where something was: the same length.
    """

    start: float
    step: float
    values: Values
    seen: NDArray[np.bool_]

    @property
    def times(self) -> Values:
        """Seconds of each value."""
        return self.start + self.step * np.arange(len(self.values), dtype=np.float64)

    def part(self, low: int, high: int) -> "Grid":
        """The values from one index to before another."""
        start = self.start + low * self.step
        return Grid(start, self.step, self.values[low:high], self.seen[low:high])


def even(times: Sequence[float] | Values, values: Sequence[float] | Values) -> Grid | Refusal:
    """Put a series on an even grid.

    Args:
        times: Seconds of any clock, not falling.
        values: As many; NaN and infinity count as not seen.

    Raises:
        ValueError: The lengths differ, or times fall or are not finite: the caller's mistake.
    """
    at, found = np.asarray(times, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if at.shape != found.shape or at.ndim != 1:
        raise ValueError(f"times and values differ in shape: {at.shape}, {found.shape}")
    if not np.isfinite(at).all() or (np.diff(at) < 0).any():
        raise ValueError("times must be finite and must not fall")
    good = np.isfinite(found)
    if good.sum() < min(len(found), LEAST_SAMPLES) or good.sum() < _LEAST_SEEN * len(found):
        return Refusal(f"{len(found) - good.sum()} of {len(found)} values are not numbers")
    at, first = np.unique(at[good], return_index=True)
    found = found[good][first]
    if len(at) < LEAST_SAMPLES:
        return Refusal(
            f"{counted(len(at), 'sample is', 'samples are')} too few: {LEAST_SAMPLES} at least"
        )
    pauses = np.diff(at)
    step = float(np.median(pauses))
    count = round((at[-1] - at[0]) / step) + 1
    if count > 2 * len(at) + LEAST_SAMPLES:
        share = len(at) / count
        return Refusal(f"only {share:.0%} of the time was seen: {1 / _LEAST_SEEN:g} times too few")
    grid = at[0] + step * np.arange(count)
    before = np.clip(np.searchsorted(at, grid, side="right") - 1, 0, len(at) - 1)
    after = np.clip(before + 1, 0, len(at) - 1)
    seen = (at[after] - at[before] <= _GAP * step) | (np.abs(grid - at[before]) <= step / 2)
    made = np.where(seen, np.interp(grid, at, found), found[before])
    return Grid(float(at[0]), step, made, seen)

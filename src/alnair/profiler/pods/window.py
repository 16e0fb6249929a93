"""The last ten minutes of each pod, one value a second for each metric, for analysis.

float32: 110 pods take 4.8 MB.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.profiler.pods.digest_table import METRICS

#: What a roll-up of some samples says.
STATS: Final = ("mean", "p95", "max")
#: Samples that are kept; one a second.
LENGTH: Final = 600

_Floats = NDArray[np.float64]


class Windows:
    """Rings, with one time for all rows.

    Args:
        rows: At the beginning; they grow.
        length: Samples.
    """

    def __init__(self, rows: int = 32, length: int = LENGTH) -> None:
        self._length = length
        self._at = np.full(length, np.nan)
        self._values = np.full((rows, length, len(METRICS)), np.nan, np.float32)
        self._next = 0
        self._free = list(range(rows - 1, -1, -1))

    def add(self) -> int:
        """Return a row that is empty."""
        if not self._free:
            old = len(self._values)
            more = np.full_like(self._values, np.nan)
            self._values = np.concatenate([self._values, more])
            self._free = list(range(2 * old - 1, old - 1, -1))
        return self._free.pop()

    def remove(self, row: int) -> None:
        """Empty a row, for others."""
        self._values[row] = np.nan
        self._free.append(row)

    def put(self, at: float, rows: Sequence[int], values: NDArray[np.float64]) -> None:
        """Take in the samples of a moment; rows that are not named have none.

        Args:
            at: When.
            rows: No row twice.
            values: Rows by metrics; NaN: not measured.
        """
        self._values[:, self._next] = np.nan
        self._at[self._next] = at
        if len(rows):
            self._values[np.asarray(rows), self._next] = values
        self._next = (self._next + 1) % self._length

    def series(self, row: int) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Return times, the oldest first, and samples by metrics, from the row's first on."""
        order = np.roll(np.arange(self._length), -self._next)
        values = self._values[row, order]
        there = np.flatnonzero(~np.isnan(values).all(axis=1))
        begin = int(there[0]) if there.size else self._length
        return self._at[order][begin:], values[begin:]

    def newest(self, row: int, count: int) -> NDArray[np.float32]:
        """Return the last samples of a row by metrics."""
        order = np.arange(self._next - count, self._next) % self._length
        newest: NDArray[np.float32] = self._values[row, order]
        return newest

    def roll_ups(self, rows: Sequence[int], metrics: Sequence[str], count: int) -> _Floats:
        """Return rows by metrics by `STATS` over the last samples; NaN: nothing was measured."""
        order = np.arange(self._next - count, self._next) % self._length
        columns = np.array([METRICS.index(metric) for metric in metrics], np.int64)
        places = np.ix_(np.asarray(rows, np.int64), order, columns)
        found = np.sort(self._values[places].astype(np.float64), axis=1)  # NaN last
        known = np.sum(~np.isnan(found), axis=1)
        last = np.maximum(known - 1, 0)

        def at(place: NDArray[np.int64]) -> _Floats:
            return np.take_along_axis(found, place[:, None], axis=1)[:, 0]

        mean = np.nansum(found, axis=1) / np.maximum(known, 1)
        mean[known == 0] = np.nan
        return np.stack((mean, at(np.rint(0.95 * last).astype(np.int64)), at(last)), axis=2)

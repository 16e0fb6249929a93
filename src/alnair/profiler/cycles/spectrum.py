"""Which periods a series may have: the peaks of its spectrum.

A peak counts by its height, and by how far it stands above the spectrum around it, since in a
series that wanders slow waves are high without being cycles.
"""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.profiler.cycles.autocorrelation import without_trend

Values = NDArray[np.float64]
#: So many of the highest peaks, and of those that stand out most.
_PEAKS: Final = 6
#: A harmonic may stand out more than the cycle itself: multiples of its period are tried, too.
_MULTIPLES: Final = (1, 2, 3)
#: Two periods closer than this, as a ratio, are tried once.
_ALIKE: Final = 0.05
#: The spectrum around a frequency: from 1/1.6 to 1.6 of it.
_AROUND: Final = 0.45
_POINTS: Final = 24


def candidates(values: Values, seen: NDArray[np.bool_]) -> Iterator[float]:
    """Yield periods that are worth a try, in steps, each once.

    Args:
        values: Of an even grid.
        seen: Which of them count.
    """
    count = len(values)
    flat = without_trend(values, seen, count)
    size = 1 << (2 * count).bit_length()
    power = np.abs(np.fft.rfft(flat * np.hanning(count), size)) ** 2
    tops = np.flatnonzero((power[1:-1] > power[:-2]) & (power[1:-1] >= power[2:])) + 1
    tops = tops[tops >= 2 * size / count]  # two cycles at least
    above = np.log(power[tops] + 1e-300) - _surroundings(power, tops, count)
    chosen = (*tops[np.argsort(-above)][:_PEAKS], *tops[np.argsort(-power[tops])][:_PEAKS])
    tried: set[int] = set()
    for top in chosen:
        for multiple in _MULTIPLES:
            period = multiple * size / int(top)
            key = round(math.log(period) / _ALIKE)
            if key not in tried and period <= count / 3:
                tried.add(key)
                yield period


def _surroundings(power: Values, at: NDArray[np.intp], count: int) -> Values:
    """The median of the logarithm of the spectrum around each frequency."""
    frequencies = np.log(np.arange(1, len(power)))
    logs = np.log(power[1:] + 1e-300)
    size = 2 * (len(power) - 1)
    centers = np.linspace(np.log(size / count), frequencies[-1], _POINTS)
    bounds = np.searchsorted(frequencies, (centers - _AROUND, centers + _AROUND))
    medians = [float(np.median(logs[low : high + 1])) for low, high in bounds.T]
    return np.interp(np.log(at), centers, medians)

"""Autocorrelation of a series with gaps, and the hills on it."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
#: Lags for each step: a cycle of 2.5 steps has its hill between two of them.
FINE: Final = 4


def without_trend(values: Values, seen: NDArray[np.bool_], window: float) -> Values:
    """Values less their moving mean; 0 where nothing was seen.

    Args:
        values: Of an even grid.
        seen: Which of them count.
        window: Width of the mean in steps; at the ends it is narrower.
    """
    half = max(1, round(window / 2))
    weights = seen.astype(np.float64)
    sums = np.concatenate(([0.0], np.cumsum(values * weights)))
    counts = np.concatenate(([0.0], np.cumsum(weights)))
    at = np.arange(len(values))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(values))
    means = (sums[high] - sums[low]) / np.maximum(counts[high] - counts[low], 1.0)
    return np.where(seen, values - means, 0.0)


def autocorrelation(values: Values, seen: NDArray[np.bool_], most: float) -> Values:
    """Correlation of a series with itself, -1 to 1, at every `1 / FINE` of a step.

    Each lag is normalised by the energy of the very pairs that it is made of, so that neither gaps
    nor the shrinking overlap bias it; between whole steps it is interpolated by its spectrum.

    Args:
        values: Without trend, 0 where nothing was seen.
        seen: Which of them count.
        most: The largest lag, in steps.
    """
    whole = int(most) + 2
    size = 1 << (len(values) + whole).bit_length()
    power = np.abs(np.fft.rfft(values, size)) ** 2
    earlier, later = _energies(values, seen, whole, size)
    energy = np.sqrt(np.maximum(earlier, 0.0) * np.maximum(later, 0.0))
    lags = np.arange(int(most * FINE) + 1)
    products = np.fft.irfft(power, size * FINE)[: len(lags)] * FINE
    energies = np.interp(lags / FINE, np.arange(whole), energy)
    floor = 1e-6 * max(float(energies[0]), 1e-300)
    return np.where(energies > floor, products / np.maximum(energies, floor), 0.0)


def _energies(
    values: Values, seen: NDArray[np.bool_], whole: int, size: int
) -> tuple[Values, Values]:
    """Return the energy of the earlier and the later of all pairs, at each whole lag."""
    if seen.all():
        sums = np.concatenate(([0.0], np.cumsum(values**2)))
        lags = np.minimum(np.arange(whole), len(values))
        return sums[len(values) - lags], sums[-1] - sums[lags]
    squares = np.fft.rfft(values**2, size)
    weights = np.fft.rfft(seen.astype(np.float64), size)
    later = np.fft.irfft(np.conj(weights) * squares, size)[:whole]
    return np.fft.irfft(np.conj(squares) * weights, size)[:whole], later


def hill(correlation: Values, near: float, within: float) -> tuple[float, float] | None:
    """The highest local maximum near a lag, as (lag in steps, height); by a parabola.

    Args:
        correlation: As `autocorrelation` makes it.
        near: Lag, in steps.
        within: So many steps less or more.
    """
    low = max(1, int(np.ceil((near - within) * FINE)))
    high = min(int((near + within) * FINE), len(correlation) - 2)
    if high < low:
        return None
    part = correlation[low - 1 : high + 2]
    tops = np.flatnonzero((part[1:-1] >= part[:-2]) & (part[1:-1] > part[2:])) + low
    if not len(tops):
        return None
    top = int(tops[np.argmax(correlation[tops])])
    before, at, after = map(float, correlation[top - 1 : top + 2])
    bend = before - 2 * at + after
    shift = 0.0 if bend >= 0 else 0.5 * (before - after) / bend
    return (top + shift) / FINE, at - 0.25 * (before - after) * shift

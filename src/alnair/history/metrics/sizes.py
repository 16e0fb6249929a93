"""Sizes of jobs, and distributions by them."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.history.metrics.result import BySize, Censored, Distribution
from alnair.history.metrics.steps import Floats

Integers = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: By the GPUs that a job asks for: none, less than one, one, and so on.
SIZES: Final = ("cpu", "shared", "1", "2-4", "5-8", "more")


def sizes(gpus: Floats) -> Integers:
    """Return the sizes of jobs or pods that ask for so many GPUs, as positions in `SIZES`."""
    found: Integers = np.searchsorted([0.0, 1.0, 1.0, 4.0, 8.0], gpus, side="left")
    found[gpus == 1.0] = 2
    return found


def distribution(values: Floats) -> Distribution:
    """Return the distribution of some numbers."""
    if not len(values):
        return Distribution(0)
    p50, p90, p99 = (float(p) for p in np.percentile(values, (50, 90, 99)))
    return Distribution(len(values), float(values.mean()), p50, p90, p99, float(values.max()))


def by_size(sizes: Integers, values: Floats, is_open: Mask) -> BySize:
    """Return the distribution of times, of all and of each size that occurs.

    Args:
        sizes: of each, a position in `SIZES`.
        values: times; of what is open, so far.
        is_open: whether each is.
    """
    found = {"all": _censored(values, is_open)}
    for number, name in enumerate(SIZES):
        rows = sizes == number
        if rows.any():
            found[name] = _censored(values[rows], is_open[rows])
    return found


def _censored(values: Floats, is_open: Mask) -> Censored:
    return Censored(distribution(values[~is_open]), int(is_open.sum()), distribution(values))

"""Percentiles of what was measured: always one of the values, by nearest rank.

Source: https://en.wikipedia.org/wiki/Percentile#The_nearest-rank_method (also NIST/SEMATECH,
e-Handbook of Statistical Methods, 7.2.6.2, which lists the definitions). The metrics of a history
interpolate instead (`alnair.history.metrics.sizes`), as numpy does.
"""

from collections.abc import Sequence


def nearest_rank(ascending: Sequence[float], percent: int) -> float | None:
    """Return the least value that at least so many percent of the values do not exceed.

    Args:
        ascending: values in ascending order, of any unit.
        percent: 0 to 100.

    Returns:
        one of the values; None if there are none.
    """
    if not ascending:
        return None
    rank = -(-percent * len(ascending) // 100)  # rounded up, without the error of a float
    return ascending[max(rank, 1) - 1]

"""Where the level of a series changes: the cut with the least cost, found exactly.

PELT (Killick, Fearnhead, Eckley, JASA 2012): the cost of a part is the sum of squared distances
from its mean, over the variance of the noise; each further part costs a penalty; beginnings that
can no longer be best are dropped, so that the time is about linear.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
#: What a part costs: this, times one more than there are features, times the logarithm of the
#: length. BIC would take 1; noise that remembers needs more.
_PENALTY: Final = 4.0
#: Noise is at least this part of the spread of a feature: else a rounded, still one is cut up.
_LEAST_NOISE: Final = 0.03
#: From the median of absolute differences of neighbours to a deviation: sqrt(2) times 0.6745.
_OF_DIFFERENCES: Final = 0.954


def change_points(features: Values, least: int = 2) -> list[int]:
    """Return where parts begin, without the first: indices that rise.

    Args:
        features: A row for each moment, a column for each feature; finite.
        least: How many moments a part has at least.
    """
    count, width = features.shape
    if count < max(2, 2 * least):
        return []
    scaled = features / _noise(features)
    scaled = scaled - scaled.mean(axis=0)
    sums = np.vstack((np.zeros(width), np.cumsum(scaled, axis=0)))
    squares = np.concatenate(([0.0], np.cumsum((scaled**2).sum(axis=1))))
    penalty = _PENALTY * (width + 1) * np.log(count)
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    came_from = np.zeros(count + 1, dtype=np.intp)
    room, known = np.zeros(count + 1, dtype=np.intp), 1
    for end in range(least, count + 1):
        begins = room[:known]
        lengths = end - begins
        of_part = squares[end] - squares[begins]
        apart = sums[end] - sums[begins]
        of_part -= np.einsum("ij,ij->i", apart, apart) / lengths
        totals = best[begins] + of_part
        chosen = int(np.argmin(totals))
        best[end] = totals[chosen] + penalty
        came_from[end] = begins[chosen]
        kept = begins[totals <= best[end]]
        room[: len(kept)] = kept
        room[len(kept)] = end - least + 1
        known = len(kept) + 1
    found = []
    at = int(came_from[count])
    while at > 0:
        found.append(at)
        at = int(came_from[at])
    return found[::-1]


def _noise(features: Values) -> Values:
    """Deviation of each feature from moment to moment, blind to changes of level."""
    differences = np.abs(np.diff(features, axis=0))
    noise = np.median(differences, axis=0) / _OF_DIFFERENCES
    floored = np.maximum(noise, _LEAST_NOISE * np.ptp(features, axis=0))
    return np.where(floored > 0, floored, 1.0)

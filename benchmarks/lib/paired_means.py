"""Means over seeds side by side, and whether a difference is more than chance."""

import math
import statistics
from collections.abc import Sequence

import msgspec

#: A difference beyond so many standard errors is not called chance.
ERRORS = 3.0
#: Fewer pairs than this say nothing either way.
LEAST_PAIRS = 8


class Difference(msgspec.Struct, frozen=True):
    """The mean of paired differences.

    Attributes:
        mean: of ours minus theirs.
        error: its standard error; infinite for a single pair.
        pairs: how many.
    """

    mean: float
    error: float
    pairs: int

    @property
    def below(self) -> bool:
        """Ours is less, and not by chance."""
        return self.pairs >= LEAST_PAIRS and self.mean < -ERRORS * self.error


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Difference:
    """Return the mean difference of what the same seeds led to.

    Raises:
        ValueError: not as many of the one as of the other, or none.
    """
    found = [a - b for a, b in zip(ours, theirs, strict=True)]
    error = statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else math.inf
    return Difference(statistics.fmean(found), error, len(found))

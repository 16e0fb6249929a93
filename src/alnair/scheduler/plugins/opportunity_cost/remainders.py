"""What the cores or the memory that a node has left are worth, where they run out before GPUs do.

All of a scarce resource is taken in the end, and by whom depends on how much of it lies together:
a node with three cores left takes only pods of up to three, which bring the most GPU per core. So
the next core is worth, in GPUs, what pods that fit into the remainder ask for of GPUs per core that
they ask for. That falls as remainders grow, to the mean of all pods, since larger pods and those
without GPUs fit too. Placements that cost the least by it leave each node a little, which small
pods find, rather than all of it on a few nodes, where pods without GPUs do.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from alnair.scheduler.state.nodes.columns import Column

#: Remainders are told apart in this many parts of the largest request.
_PARTS: Final = 4096
#: Part of what is asked for that has to be missing before remainders count in full.
_FULL: Final = 0.05


def weight(scarcity: float) -> float:
    """Return how much remainders count, from 0 where a resource lasts to 1.

    Args:
        scarcity: what pods ask for per GPU over what nodes have per GPU.
    """
    missing = 1.0 - 1.0 / max(scarcity, 1.0)
    return min(missing / _FULL, 1.0)


class Remainders:
    """Worths of remainders of one resource.

    Args:
        pods: what one asks for of the resource, GPUs that it takes, and how many there are.
        scarcity: as for `weight`.

    Attributes:
        count: whether they are worth anything.
    """

    def __init__(self, pods: Iterable[tuple[int, float, float]], scarcity: float) -> None:
        part = weight(scarcity)
        ordered = sorted(pods) if part else []
        largest = ordered[-1][0] if ordered else 0
        self.count = largest > 0
        self._scale = _PARTS / largest if self.count else 0.0
        self._worth: Column = np.zeros(_PARTS + 1)
        self._worths: list[float] = []
        if not self.count:
            return
        gpus = np.zeros(_PARTS + 1)
        amount = np.zeros(_PARTS + 1)
        for request, taken, count in ordered:
            at = min(int(request * self._scale), _PARTS)
            gpus[at] += taken * count
            amount[at] += request * count
        gpus, amount = np.cumsum(gpus), np.cumsum(amount)
        per_unit = np.divide(gpus, amount, out=np.zeros(_PARTS + 1), where=amount > 0)
        self._worth[1:] = np.cumsum(per_unit[1:]) / self._scale * part
        self._worths = self._worth.tolist()

    def of(self, free: Column) -> Column:
        """Return the worth of such amounts, in GPUs; it is the same beyond the largest pod."""
        at = free * self._scale
        np.clip(at, 0.0, _PARTS, out=at)
        found: Column = self._worth.take(at.astype(np.intp))
        return found

    def of_one(self, free: float) -> float:
        """Return the same of one amount, in plain numbers."""
        return self._worths[int(min(max(free * self._scale, 0.0), _PARTS))]

"""Which GPUs of a node belong together: the best-connected set of free ones, found exactly.

Every subset of a node's GPUs is rated once per wiring, by doubling: the subsets with a GPU are
those without it, each with that GPU's links added. A choice is then one comparison of those that
are free, and is remembered.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model.nodes import Gpu

#: Nodes with more GPUs are not searched: the subsets would be too many.
MOST_GPUS: Final = 16

_NVLINKS: Final = re.compile(r"NV([0-9]{1,2})")
_ONE_NVLINK: Final = 100
#: As a GPU of the H100 or B200 has (`alnair.model.gpu_models`).
_MOST_NVLINKS: Final = 18
#: Kind of link → strength. The order is that of `nvidia-smi topo`, the numbers those of NVIDIA's
#: go-gpuallocator, where one NVLink counts 100.
_STRENGTHS: Final = {
    "SYS": 10,
    "NODE": 20,
    "PHB": 30,
    "PXB": 40,
    "PIX": 50,
    "NVSWITCH": _ONE_NVLINK * _MOST_NVLINKS,
}
_CHOICES_KEPT: Final = 20_000


class Wiring(msgspec.Struct, frozen=True, cache_hash=True):
    """How the GPUs of a node are connected: strengths between them, and their NUMA zones."""

    strengths: tuple[tuple[int, ...], ...]
    zones: tuple[int | None, ...]


def strength(kind: str) -> int:
    """Return how strong a link is, 0 if its kind is not known."""
    if match := _NVLINKS.fullmatch(kind):
        return int(match[1]) * _ONE_NVLINK
    return _STRENGTHS.get(kind.upper(), 0)


#: Index, NUMA zone and links of a GPU.
_Described = tuple[int, int | None, tuple[tuple[int, str], ...]]


def wiring(gpus: Sequence[Gpu]) -> Wiring | None:
    """Return how the GPUs are connected, None if nothing is known or they are too many.

    Where no link is described, GPUs of one NUMA zone are NODE apart and others SYS.
    """
    if not 0 < len(gpus) <= MOST_GPUS:
        return None
    return _wiring(tuple((gpu.index, gpu.numa, gpu.links) for gpu in gpus))


@cache
def _wiring(gpus: tuple[_Described, ...]) -> Wiring | None:
    rows = tuple(tuple(_between(a, b) for b in gpus) for a in gpus)
    zones = tuple(zone for _, zone, _ in gpus)
    if not any(map(any, rows)) and not any(zone is not None for zone in zones):
        return None
    return Wiring(rows, zones)


def _between(a: _Described, b: _Described) -> int:
    if a[0] == b[0]:
        return 0
    # What the two say of each other should agree; where it does not, the weaker is believed.
    kinds = [
        kind
        for links, other in ((a[2], b[0]), (b[2], a[0]))
        for index, kind in links
        if index == other
    ]
    if kinds:
        return min(map(strength, kinds))
    if a[1] is None or b[1] is None:
        return 0
    return _STRENGTHS["NODE" if a[1] == b[1] else "SYS"]


#: Sets whose weakest link is an NVLink score this or more.
NVLINK: Final = 60


def quality(least: int) -> int:
    """Return the score, 0-100, of a set by its weakest link: NVLinks 60-100, PCIe 10-50."""
    if least < _ONE_NVLINK:
        return least
    return NVLINK + (100 - NVLINK) * min(least // _ONE_NVLINK, _MOST_NVLINKS) // _MOST_NVLINKS


class Cliques:
    """The subsets of a node's GPUs, as bit masks, and what connects them."""

    def __init__(self, wired: Wiring) -> None:
        size = len(wired.strengths)
        self._total: NDArray[np.int64] = np.zeros(1, np.int64)
        self._least: NDArray[np.int64] = np.full(1, _MOST_NVLINKS * 1000)
        self._near: NDArray[np.int64] = np.zeros(1, np.int64)
        count: NDArray[np.int64] = np.zeros(1, np.int64)
        for gpu in range(size):
            total = near = np.zeros(1, np.int64)
            least = np.full(1, self._least[0])
            for other in range(gpu):
                link = wired.strengths[gpu][other]
                same = wired.zones[gpu] is not None and wired.zones[gpu] == wired.zones[other]
                total = np.concatenate([total, total + link])
                near = np.concatenate([near, near + same])
                least = np.concatenate([least, np.minimum(least, link)])
            self._total = np.concatenate([self._total, self._total + total])
            self._near = np.concatenate([self._near, self._near + near])
            self._least = np.concatenate([self._least, np.minimum(self._least, least)])
            count = np.concatenate([count, count + 1])
        self._by_count = [np.flatnonzero(count == k) for k in range(size + 1)]
        self._chosen: dict[tuple[int, int, int, int], int | None] = {}

    def best(self, free: int, count: int, inside: int = 0, in_use: int = 0) -> int | None:
        """Return the set of so many free GPUs to give, None if there are too few.

        The strongest weakest link comes first, then the sum of all links, then GPUs that are all in
        `inside`, then pairs in one NUMA zone. Among equals the set goes whose absence leaves the
        strongest links to others, or that has the weakest links to those `in_use`, and then the one
        of the lowest slots.

        Args:
            free: mask of the GPUs to choose from.
            count: GPUs wanted.
            inside: mask of the GPUs near the cores and memory that the pod can have.
            in_use: mask of the GPUs to keep away from; 0 = none.
        """
        key = (free, count, inside, in_use)
        if key not in self._chosen:
            if len(self._chosen) >= _CHOICES_KEPT:
                self._chosen.clear()
            self._chosen[key] = self._search(*key)
        return self._chosen[key]

    def left(self, free: int, slot: int) -> int:
        """Return how strongly the free GPUs would be linked without this one."""
        return int(self._total[free & ~(1 << slot)])

    def between(self, some: int, others: int) -> int:
        """Return how strongly some GPUs are linked with others, which are none of them."""
        return int(self._total[some | others] - self._total[some] - self._total[others])

    def quality(self, free: int, count: int) -> int:
        """Return the score, 0-100, of the best set of at least two GPUs; 0 if there is none."""
        chosen = self.best(free, count)
        return 0 if chosen is None or count < 2 else quality(int(self._least[chosen]))

    def _search(self, free: int, count: int, inside: int, in_use: int) -> int | None:
        if count >= len(self._by_count):
            return None
        sets = self._by_count[count]
        sets = sets[(sets & ~free) == 0]
        if not len(sets):
            return None
        to_others = -self._total[free ^ sets]
        if in_use:
            to_others = self._total[in_use | sets] - self._total[sets]
        keys = (
            sets,
            to_others,
            -self._near[sets],
            (sets & ~inside) != 0,
            -self._total[sets],
            -self._least[sets],
        )
        return int(sets[np.lexsort(keys)[0]])


@cache
def cliques(wired: Wiring) -> Cliques:
    """Return the subsets of a wiring; the nodes of one machine type share them."""
    return Cliques(wired)

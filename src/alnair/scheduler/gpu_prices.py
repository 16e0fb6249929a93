"""Prices of room on GPUs by kind of GPU, and how many cores go with a GPU, for a workload mix.

A kind is a model with an amount of memory. A slice takes of a GPU the larger of its parts of memory
and compute, so its size depends on the kind.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from alnair.model.workload import GpuDemand
from alnair.scheduler.columns import Column
from alnair.scheduler.cutting_stock import UNITS, worth
from alnair.scheduler.workload_mix import Ask

#: What a slice costs where it has no place: more than anywhere else.
_NO_PLACE = 2.0


class GpuPrices:
    """Prices for a mix.

    Args:
        mix: what pods ask for, and how many ask for it.
        kinds: model and MiB of each kind of GPU, the first of which stands for none.

    Attributes:
        worth: (kinds, UNITS + 1), what free room on a GPU is worth, in GPUs.
        cores_per_gpu: millicores that pods with GPUs ask for per GPU; 0 if that is not known.
    """

    def __init__(
        self, mix: Iterable[tuple[Ask, float]], kinds: Sequence[tuple[str, int]]
    ) -> None:
        self._kinds = kinds
        slices: list[tuple[Ask, float]] = []
        gpus = cores = 0.0
        for ask, count in mix:
            if ask.memory_mib and not ask.whole:
                slices.append((ask, count))
                gpus += count * ask.compute / 100
            if ask.whole or ask.memory_mib:
                gpus += count * ask.whole
                cores += count * ask.cpu_milli
        self.cores_per_gpu = cores / gpus if gpus else 0.0
        solved: dict[frozenset[tuple[int, float]], Column] = {}
        self.worth: Column = np.zeros((len(kinds), UNITS + 1))
        for kind in range(1, len(kinds)):
            sizes: dict[int, float] = {}
            for ask, count in slices:
                size = self.size(ask.memory_mib, ask.compute, kind)
                if ask.accepts(kinds[kind][0]) and size < UNITS:
                    sizes[size] = sizes.get(size, 0.0) + count
            key = frozenset(sizes.items())
            if key not in solved:
                solved[key] = worth(sizes)
            self.worth[kind] = solved[key]
        self._tables: dict[GpuDemand, Column] = {}

    def size(self, memory_mib: int, compute: int, kind: int) -> int:
        """Return the size of a slice on a GPU of the kind, in units, 1 at least.

        It is rounded down, so that a GPU that so many of them fill exactly holds so many.
        """
        memory = self._kinds[kind][1]
        part = max(memory_mib / memory if memory else 1.0, compute / 100)
        return max(1, int(part * UNITS + 1e-6))

    def cost_of_slice(self, demand: GpuDemand) -> Column:
        """Return what the slice costs at each level of each kind, as `Devices.cell` numbers them.

        That is what the GPU's room is worth before less what it is worth after.
        """
        table = self._tables.get(demand)
        if table is None:
            costs = np.full(self.worth.shape, _NO_PLACE)
            for kind in range(1, len(self._kinds)):
                size = self.size(demand.memory_mib, demand.compute, kind)
                if size <= UNITS and demand.accepts(self._kinds[kind][0]):
                    room = self.worth[kind]
                    costs[kind, size:] = room[size:] - room[: UNITS + 1 - size]
            table = self._tables[demand] = costs.ravel()
        return table

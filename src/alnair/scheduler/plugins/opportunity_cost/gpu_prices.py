"""Prices of room on GPUs by kind of GPU, and what goes with a GPU, for a workload mix.

A kind is a model with an amount of memory. A slice takes of a GPU the larger of its parts of memory
and compute, so its size depends on the kind.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import GpuDemand
from alnair.scheduler.plugins.opportunity_cost.cutting_stock import UNITS, worth
from alnair.scheduler.plugins.opportunity_cost.partners import Wanted
from alnair.scheduler.plugins.opportunity_cost.workload_mix import Ask
from alnair.scheduler.state.nodes.columns import Column

#: Prices are multiples of this: their sums are exact, in whatever order.
GRAIN: Final = 2.0**-20
#: Costs are multiples of this, in half grains: a thousandth of a GPU. Finer differences are errors
#: of rounding, and would scatter slices that cost alike over GPUs.
_COST_STEP: Final = 2**11
#: What a slice costs where it has no place, in half grains: more than anywhere else.
NO_PLACE: Final = 2**22
_MIB: Final = 2.0**20


class GpuPrices:
    """Prices for a mix.

    Args:
        mix: what pods ask for, and how many ask for it.
        kinds: model and MiB of each kind of GPU, the first of which stands for none.
        there: how many GPUs there are of each kind.

    Attributes:
        worth: (kinds · (UNITS + 1),), what free room on a GPU is worth, in GPUs, by kind and level
            as `Devices.cell` numbers them.
        cpu, memory: what goes with GPUs, in millicores and bytes.
        cpu_of_pods, memory_of_pods: what one pod asks for, GPUs that it takes, and how many do.
    """

    def __init__(
        self,
        mix: Iterable[tuple[Ask, float]],
        kinds: Sequence[tuple[str, int]],
        there: Sequence[int],
    ) -> None:
        self._kinds = kinds
        self._there = there
        asks: list[tuple[Ask, float]] = []
        others: list[tuple[Ask, float]] = []
        for ask, count in mix:
            (asks if ask.whole or ask.memory_mib else others).append((ask, count))
        self._worth: Column = np.zeros((len(kinds), UNITS + 1))
        solved: dict[tuple[tuple[int, float], ...], Column] = {}
        for kind in range(1, len(kinds)):
            sizes = self._sizes(asks, kind)
            if sizes not in solved:
                solved[sizes] = np.round(worth(dict(sizes)) / GRAIN) * GRAIN
            self._worth[kind] = solved[sizes]
        self.worth = self._worth.ravel()
        taken = [count * self._taken(ask) for ask, count in asks]
        self.cpu = Wanted(
            tuple((gpus, n * ask.cpu_milli) for gpus, (ask, n) in zip(taken, asks, strict=True)),
            sum(count * ask.cpu_milli for ask, count in others),
        )
        self.memory = Wanted(
            tuple((g, n * ask.ram_mib * _MIB) for g, (ask, n) in zip(taken, asks, strict=True)),
            sum(count * ask.ram_mib * _MIB for ask, count in others),
        )
        every = [*zip(asks, taken, strict=True), *((other, 0.0) for other in others)]
        self.cpu_of_pods = [(ask.cpu_milli, gpus / n, n) for (ask, n), gpus in every]
        self.memory_of_pods = [(ask.ram_mib << 20, gpus / n, n) for (ask, n), gpus in every]
        self._tables: dict[GpuDemand, NDArray[np.int64]] = {}

    def cost_of_slice(self, demand: GpuDemand) -> NDArray[np.int64]:
        """Return what the slice costs by kind and level: worth before less worth after.

        Costs are counted in half grains, and are odd where the slice would open a GPU that is free:
        of GPUs that cost alike, one in use is better.
        """
        table = self._tables.get(demand)
        if table is None:
            costs = np.full(self._worth.shape, NO_PLACE, np.int64)
            for kind in range(1, len(self._kinds)):
                size = self._size(demand.memory_mib, demand.compute, kind)
                if size <= UNITS and demand.accepts(self._kinds[kind][0]):
                    room = (self._worth[kind] * (2 / GRAIN)).astype(np.int64)
                    taken = room[size:] - room[: UNITS + 1 - size]
                    costs[kind, size:] = (taken + _COST_STEP // 2) // _COST_STEP * _COST_STEP
                    costs[kind, UNITS] += 1
            table = self._tables[demand] = costs.ravel()
        return table

    def _size(self, memory_mib: int, compute: int, kind: int) -> int:
        """Return the size of a slice on a GPU of the kind, in units, 1 at least.

        It is rounded down, so that a GPU that so many of them fill exactly holds so many.
        """
        memory = self._kinds[kind][1]
        part = max(memory_mib / memory if memory else 1.0, compute / 100)
        return max(1, int(part * UNITS + 1e-6))

    def _sizes(self, asks: Iterable[tuple[Ask, float]], kind: int) -> tuple[tuple[int, float], ...]:
        """Return the slices that may go to GPUs of the kind: sizes, and how many of each."""
        sizes: dict[int, float] = {}
        for ask, count in asks:
            if ask.memory_mib:
                size = self._size(ask.memory_mib, ask.compute, kind)
                if size < UNITS:
                    sizes[size] = sizes.get(size, 0.0) + count
        return tuple(sorted(sizes.items()))

    def _taken(self, ask: Ask) -> float:
        """Return the GPUs that a pod takes, a slice counted as what it takes of an empty GPU."""
        if not ask.memory_mib:
            return float(ask.whole)
        cost = total = 0.0
        for kind, count in enumerate(self._there):
            if count and ask.accepts(self._kinds[kind][0]):
                size = min(self._size(ask.memory_mib, ask.compute, kind), UNITS)
                room = self._worth[kind]
                cost += count * float(room[UNITS] - room[UNITS - size])
                total += count
        return ask.whole + (cost / total if total else 0.0)

"""How many of a node's free GPUs lack the cores or the memory that usually go with them.

Kept for all rows and shared by all classes of pods, since it depends on the node alone.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from alnair.scheduler.plugins.opportunity_cost.gpu_prices import GpuPrices
from alnair.scheduler.plugins.opportunity_cost.partners import Partner
from alnair.scheduler.plugins.opportunity_cost.remainders import Remainders
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows, of_rows

#: The bend of the soft maximum is looked up in steps of this part of the softness, up to so many.
_FINE: Final = 256
_BEND: Final = np.log1p(np.exp(-np.arange(16 * _FINE + 1) / _FINE))
_BEND[-1] = 0.0
_BENDS: Final[list[float]] = _BEND.tolist()
#: Where there are no GPUs, none lacks anything.
_NEVER: Final = -1e9
_NOTHING: Final = np.zeros((2, 1))


class Imbalance:
    """What each row has too much of GPUs, beside its cores and its memory.

    Args:
        cluster: its state.
        prices: for a mix.
        partners: cores and memory.
        remainders: of cores and of memory.

    Attributes:
        excess: (2, rows), the worth of free GPUs less the GPUs that the free cores, the free
            memory suffice for.
        worth: (rows,), the worth of free GPUs.
        cost: (rows,), the sum of both as soft maxima with 0, m ln(1 + e^(x/m)), in GPUs, less what
            is left of what is scarce is worth.
        remains: the remainders that count: which row of `Columns.free`, and their worth.
        idle: (rows,), whether the row has GPUs, and none is in use.
    """

    def __init__(
        self,
        cluster: Cluster,
        prices: GpuPrices,
        partners: Sequence[Partner],
        remainders: Sequence[Remainders],
    ) -> None:
        self._columns, self._devices = cluster.columns, cluster.devices
        self._worth = prices.worth
        self.remains = [(r, one) for r, one in enumerate(remainders) if one.count]
        softness = [partner.softness for partner in partners]
        self._softness = np.array([[m] for m in softness])
        self._scale = _FINE / self._softness
        self._of_cpu, self._of_memory = ((m, _FINE / m) for m in softness)
        self.each = np.array([[1.0 / max(partner.per_gpu, 1.0)] for partner in partners])
        self._cpu, self._memory = (float(part) for part in self.each[:, 0])
        self.excess: Column = np.zeros((2, 0))
        self.worth: Column = np.zeros(0)
        self.cost: Column = np.zeros(0)
        self.idle: Mask = np.zeros(0, bool)
        self._epoch = -1
        self._nodes_read = self._booked_read = 0

    def refresh(self) -> None:
        """Follow what was booked."""
        columns = self._columns
        nodes_end, booked_end = columns.nodes_changed.end, columns.booked.end
        if self._epoch == columns.epoch:
            if self._nodes_read == nodes_end and self._booked_read == booked_end:
                return
            nodes = columns.nodes_changed.since(self._nodes_read)
            booked = columns.booked.since(self._booked_read)
        else:
            nodes = booked = None
        self._epoch = columns.epoch
        self._nodes_read, self._booked_read = nodes_end, booked_end
        if nodes is None or booked is None or len(nodes) + len(booked) > columns.n // 8:
            self._all()
        else:
            for row in {*nodes, *booked}:
                self._one(row)

    def soft(self, excess: Column) -> Column:
        """Return the sum of both soft maxima for some rows."""
        bend = np.abs(excess)
        bend *= self._scale
        np.minimum(bend, len(_BENDS) - 1, out=bend)
        found: Column = _BEND.take(bend.astype(np.intp))
        found *= self._softness
        found += np.maximum(excess, 0.0)
        total: Column = found[0] + found[1]
        return total

    def soft_of(self, cpu: float, memory: float) -> float:
        """Return the same of one row, in plain numbers."""
        return _soft(cpu, *self._of_cpu) + _soft(memory, *self._of_memory)

    def left(self, rows: Rows, taken: Column | float, asked: Column) -> Column:
        """Return the worth of what would be left of what is scarce, in GPUs.

        Args:
            rows: which.
            taken: of the worth of their free GPUs.
            asked: (2, 1), millicores and bytes.
        """
        free = of_rows(self._columns.free[:2], rows) - asked
        total: Column = np.zeros(free.shape[1])
        for resource, one in self.remains:
            total += one.of(free[resource])
        # Beside no free GPU, what is left serves nobody who takes one.
        total *= np.clip(of_rows(self.worth, rows) - taken, 0.0, 1.0)
        return total

    def left_of(self, row: int, taken: float, asked: Sequence[float]) -> float:
        """Return the same of one row, in plain numbers."""
        total = 0.0
        for resource, one in self.remains:
            total += one.of_one(self._columns.free.item(resource, row) - asked[resource])
        return total * min(max(self.worth.item(row) - taken, 0.0), 1.0)

    def _all(self) -> None:
        columns, devices = self._columns, self._devices
        rows: Rows = slice(0, columns.n)
        worth = self._worth.take(devices.cell[:, rows]).sum(axis=0)
        self.excess = worth - columns.free[:2, rows] * self.each
        self.excess[:, devices.count[rows] == 0] = _NEVER
        self.worth = worth
        self.cost = self.soft(self.excess)
        if self.remains:
            self.cost -= self.left(rows, 0.0, _NOTHING)
        count = devices.count[rows]
        self.idle = (devices.whole_free[rows] == count) & (count > 0)

    def _one(self, row: int) -> None:
        columns, devices = self._columns, self._devices
        if not devices.count.item(row):
            cpu = memory = _NEVER
            worth = 0.0
        else:
            worth = sum(self._worth.take(devices.cell[:, row]).tolist())
            cpu = worth - columns.free.item(0, row) * self._cpu
            memory = worth - columns.free.item(1, row) * self._memory
        self.excess[0, row], self.excess[1, row] = cpu, memory
        self.worth[row] = worth
        self.cost[row] = self.soft_of(cpu, memory) - self.left_of(row, 0.0, (0.0, 0.0))
        self.idle[row] = devices.whole_free[row] == devices.count[row] > 0


def _soft(excess: float, softness: float, scale: float) -> float:
    return _BENDS[int(min(abs(excess) * scale, len(_BENDS) - 1))] * softness + max(excess, 0.0)

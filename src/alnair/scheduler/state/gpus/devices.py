"""The device table: one entry per physical GPU, for whole and shared use alike.

The columns have the shape (GPUs per node, rows), so that reductions over a node's GPUs run along
contiguous memory. A GPU is **free**, **shared** by slices, or held **whole** by one container.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model.nodes import Gpu
from alnair.scheduler.state.gpus.gpu_links import Cliques, cliques, wiring
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows

#: Free memory of a GPU that no slice may use: absent, unhealthy, or held whole.
CLOSED = -1.0
#: What is free of a GPU is also kept as a level, 0 to this: of its memory or of its compute,
#: whichever is less.
LEVELS: Final = 1000


class Booking(msgspec.Struct, frozen=True, gc=False):
    """What a pod holds of one GPU (`slot` is its position on the node)."""

    slot: int
    memory_mib: int = 0
    compute: int = 0
    soft: bool = False
    whole: bool = False


class Devices:
    """GPUs as columns.

    Attributes:
        slice_memory: MiB free for slices, `CLOSED` where none may go.
        compute_free: percent left of what may be promised in all (100 times the soft factor).
        hard_free: percent left for hard limits (100).
        count: (rows,), number of GPUs.
        unhealthy: GPUs that take nothing new; what is on them stays booked there.
        whole_free: (rows,), number of free GPUs.
        model: interned GPU model, -1 where there is no GPU.
        memory: MiB that the GPU has, whoever holds it.
        kinds: model and MiB of the GPUs seen, in the order of their numbers; 0 stands for none.
        there: how many GPUs there are of each kind.
        cell: the GPU's kind and level as one number, kind · (LEVELS + 1) + level: where it is in
            tables that say something of each level of each kind.
        largest_memory: MiB of the largest GPU ever seen.
        wired: per row, how its GPUs are connected; None if that is not known.
        wiring: (rows,), the number of that wiring among all, 0 for None.
    """

    def __init__(self) -> None:
        self.models: dict[str, int] = {}
        self.kinds: dict[tuple[str, int], int] = {("", -1): 0}
        self.there: list[int] = [0]
        self.gpus: list[tuple[Gpu, ...]] = []
        self.wired: list[Cliques | None] = []
        self.wirings: dict[Cliques | None, int] = {None: 0}
        self.largest_memory = 0.0
        self._with_unhealthy: set[int] = set()
        self._allocate(0, 0)

    def _allocate(self, slots: int, rows: int) -> None:
        shape = (slots, rows)
        self.slice_memory: Column = np.full(shape, CLOSED)
        self.compute_free: Column = np.zeros(shape)
        self.hard_free: Column = np.zeros(shape)
        self.model: NDArray[np.int32] = np.full(shape, -1, np.int32)
        self.memory: Column = np.zeros(shape)
        self._memory_free: Column = np.zeros(shape)
        self._tenants: NDArray[np.int32] = np.zeros(shape, np.int32)
        # An unhealthy GPU has one holder more, who never leaves: so it is free for nobody, and no
        # decision need ask about health.
        self._holders: NDArray[np.int32] = np.zeros(shape, np.int32)
        self.unhealthy: Mask = np.zeros(shape, bool)
        self.cell: NDArray[np.intp] = np.zeros(shape, np.intp)
        self.count: Column = np.zeros(rows)
        self.whole_free: Column = np.zeros(rows)
        self.wiring: NDArray[np.int32] = np.zeros(rows, np.int32)
        self.has_soft_factor: bool = False

    def grow(self, slots: int, rows: int) -> None:
        """Make room; existing entries keep their place."""
        old = self.slice_memory.shape
        slots, rows = max(slots, old[0]), max(rows, old[1])
        if (slots, rows) == old:
            return
        pad = ((0, slots - old[0]), (0, rows - old[1]))
        self.slice_memory = np.pad(self.slice_memory, pad, constant_values=CLOSED)
        self.compute_free = np.pad(self.compute_free, pad)
        self.hard_free = np.pad(self.hard_free, pad)
        self.model = np.pad(self.model, pad, constant_values=-1)
        self.memory = np.pad(self.memory, pad)
        self._memory_free = np.pad(self._memory_free, pad)
        self._tenants = np.pad(self._tenants, pad)
        self._holders = np.pad(self._holders, pad)
        self.unhealthy = np.pad(self.unhealthy, pad)
        self.cell = np.pad(self.cell, pad)
        self.count = np.pad(self.count, pad[1])
        self.whole_free = np.pad(self.whole_free, pad[1])
        self.wiring = np.pad(self.wiring, pad[1])
        self.wired.extend(None for _ in range(rows - len(self.wired)))
        self.gpus.extend(() for _ in range(rows - len(self.gpus)))

    def describe(self, row: int, gpus: Sequence[Gpu], soft_factor: float = 1.0) -> None:
        """Set the GPUs of a row, all free; what is held of them must be booked again."""
        self.grow(len(gpus), row + 1)
        if not gpus and not self.gpus[row]:
            return  # most nodes of most clusters: nothing is there, as before
        for gpu in self.gpus[row]:
            self.there[self.kinds[gpu.model, gpu.memory_mib]] -= 1
        self.gpus[row] = tuple(gpus)
        connected = wiring(gpus)
        self.wired[row] = wired = cliques(connected) if connected else None
        self.wiring[row] = self.wirings.setdefault(wired, len(self.wirings))
        self.has_soft_factor = self.has_soft_factor or soft_factor != 1.0
        for column, empty in (
            (self.slice_memory, CLOSED),
            (self.compute_free, 0),
            (self.hard_free, 0),
            (self.model, -1),
            (self.memory, 0),
            (self._memory_free, 0),
            (self._tenants, 0),
            (self._holders, 0),
            (self.unhealthy, False),
            (self.cell, 0),
        ):
            column[:, row] = empty
        self._with_unhealthy.discard(row)
        for slot, gpu in enumerate(gpus):
            self.slice_memory[slot, row] = self._memory_free[slot, row] = gpu.memory_mib
            self.memory[slot, row] = gpu.memory_mib
            self.largest_memory = max(self.largest_memory, float(gpu.memory_mib))
            self.compute_free[slot, row] = round(100 * soft_factor)
            self.hard_free[slot, row] = 100
            self.model[slot, row] = self.models.setdefault(gpu.model, len(self.models))
            kind = self.kinds.setdefault((gpu.model, gpu.memory_mib), len(self.kinds))
            if kind == len(self.there):
                self.there.append(0)
            self.there[kind] += 1
            self.cell[slot, row] = kind * (LEVELS + 1) + LEVELS
            if gpu.problem:
                self._with_unhealthy.add(row)
                self.unhealthy[slot, row] = True
                self._holders[slot, row] = 1
                self.slice_memory[slot, row] = CLOSED
                self._level(slot, row)
        self.count[row] = len(gpus)
        self.whole_free[row] = sum(not gpu.problem for gpu in gpus)

    def book(self, row: int, bookings: Iterable[Booking], sign: int = 1) -> None:
        """Take parts of GPUs, or give them back with `sign=-1`."""
        for b in bookings:
            slot = b.slot
            was_free = not self._tenants[slot, row] and not self._holders[slot, row]
            if b.whole:
                self._holders[slot, row] += sign
            else:
                self._tenants[slot, row] += sign
                self._memory_free[slot, row] -= sign * b.memory_mib
                self.compute_free[slot, row] -= sign * b.compute
                if not b.soft:
                    self.hard_free[slot, row] -= sign * b.compute
            held = self._holders[slot, row]
            self.slice_memory[slot, row] = CLOSED if held else self._memory_free[slot, row]
            is_free = not held and not self._tenants[slot, row]
            self.whole_free[row] += int(is_free) - int(was_free)
            self._level(slot, row)

    def _level(self, slot: int, row: int) -> None:
        """Follow what is free of the GPU."""
        free, total = self.slice_memory.item(slot, row), self.memory.item(slot, row)
        # GPUs that nobody described have no memory: they are whole, and free or not.
        memory = free / total if total else float(free != CLOSED)
        part = min(memory, self.compute_free.item(slot, row) / 100.0, 1.0)
        # Sums of parts that fill a GPU exactly shall not miss it by an ulp.
        level = max(int(part * LEVELS + 1e-6), 0)
        self.cell[slot, row] += level - self.cell.item(slot, row) % (LEVELS + 1)

    def free_slots(self, row: int) -> Mask:
        """Return which GPUs of the row are free."""
        present = self.model[:, row] >= 0
        free: Mask = present & (self._tenants[:, row] == 0) & (self._holders[:, row] == 0)
        return free

    def held_slots(self, row: int) -> Mask:
        """Return which GPUs of the row somebody holds, wholly or in part, and unhealthy ones."""
        held: Mask = (self._tenants[:, row] > 0) | (self._holders[:, row] > 0)
        return held

    def tenants(self, rows: Rows) -> NDArray[np.int32]:
        """Return how many slices each GPU holds, shape (GPUs per node, rows)."""
        tenants: NDArray[np.int32] = self._tenants[:, rows]
        return tenants

    def shared_mask(self, rows: Rows) -> Mask:
        """Return which GPUs have tenants by slices, shape (GPUs per node, rows)."""
        shared: Mask = self._tenants[:, rows] > 0
        return shared

    def free_mask(self, rows: Rows) -> Mask:
        """Return which GPUs are free, shape (GPUs per node, rows)."""
        free: Mask = (
            (self.model[:, rows] >= 0)
            & (self._tenants[:, rows] == 0)
            & (self._holders[:, rows] == 0)
        )
        return free

    def overcommitted(self, row: int) -> bool:
        """Return whether any GPU of the row is promised beyond what it has."""
        return self.excess(row) > 0

    @property
    def has_unhealthy(self) -> bool:
        """Whether any GPU is unhealthy."""
        return bool(self._with_unhealthy)

    def excess(self, row: int) -> float:
        """Return how far the row's GPUs are over-committed: 0 if they are not, less is better."""
        holders, tenants = self._holders[:, row], self._tenants[:, row]
        if row in self._with_unhealthy:  # not asked of the column: most rows have none
            holders = holders - self.unhealthy[:, row]
        clashes = np.maximum(holders - 1, 0) + tenants * (holders > 0)
        beyond = sum(
            -np.minimum(column[:, row], 0).sum()
            for column in (self._memory_free, self.compute_free, self.hard_free)
        )
        return float(clashes.sum() + beyond)

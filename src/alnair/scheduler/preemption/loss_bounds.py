"""What victims lose at least on each row: somebody's own, gangs, and work, beside their priorities.

A table of what each pod holds of each GPU answers that for all rows at once. It knows nothing of
other filters, of pods that hold several GPUs, or of members elsewhere, so it errs on the low side.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import GpuDemand
from alnair.scheduler.preemption.losses import IDLE, STEP, gpus_held, most_memory
from alnair.scheduler.state.accounts import Accounts, Record
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.nodes.columns import Column, Mask

#: MiB that stand for all of a GPU.
_WHOLE: Final = 1e18
_LEAST_SIZE: Final = 64
#: Names of gangs, and of namespaces with what their pods request, before they are counted anew.
_CODES_KEPT: Final = 50_000

Gang = tuple[str, str]
Rows = NDArray[np.intp]
#: A namespace and the requests of a pod.
Holder = tuple[str, tuple[tuple[str, int], ...]]
_Key = TypeVar("_Key")
_Codes = NDArray[np.int32]


class Least(msgspec.Struct, frozen=True):
    """What victims lose at least on each of some rows, in the order in which it decides."""

    own: Column
    any_own: Column
    kept: Column
    gangs: Column
    steps: Column


class Judges(msgspec.Struct, frozen=True):
    """What is asked of gangs and namespaces when bounds are wanted.

    Attributes:
        all_own: whether all that pods of such a kind hold is their namespace's own; None if nothing
            is anybody's.
        fate: 1 if a gang breaks for sure if any member goes, -1 if it may spare some, else 0.
    """

    all_own: Callable[[Holder], bool] | None
    fate: Callable[[Gang], int]


class _Entries:
    """What pods hold of GPUs, one entry per GPU; a pod without GPUs has one that holds nothing."""

    def __init__(self, size: int = _LEAST_SIZE) -> None:
        self.row: _Codes = np.full(size, -1, np.int32)
        self.slot: _Codes = np.full(size, -1, np.int32)
        self.gang: _Codes = np.zeros(size, np.int32)
        self.holder: _Codes = np.zeros(size, np.int32)
        self.part: Column = np.zeros(size)
        self.memory: Column = np.zeros(size)
        self.level: Column = np.zeros(size)
        #: When it started, and when it says that it saved its work.
        self.started: Column = np.zeros(size)
        self.saved: Column = np.zeros(size)

    def grow(self) -> None:
        """Make twice as much room."""
        size = len(self.row)
        for name, column in vars(self).items():
            empty = -1 if name in ("row", "slot") else 0
            setattr(self, name, np.pad(column, (0, size), constant_values=empty))


class LossTable:
    """What pods hold of GPUs, and whose they are, as columns.

    Args:
        accounts: the books.
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self._entries = _Entries()
        self._unused: list[int] = list(range(_LEAST_SIZE))
        self._at: dict[int, list[int]] = {}
        self._gangs: dict[Gang, int] = {("", ""): 0}
        self._holders: dict[Holder, int] = {("", ()): 0}

    @property
    def crowded(self) -> bool:
        """Whether it knows more names than it should, most of them of what is gone."""
        return len(self._gangs) + len(self._holders) > _CODES_KEPT

    def put(self, row: int, records: Iterable[Record]) -> None:
        """Set the pods of a row."""
        entries = self._entries
        old = self._at.pop(row, ())
        entries.row[list(old)] = -1
        self._unused += old
        found: list[int] = []
        memory = most_memory(self._accounts, row)
        for record in records:
            pod = record.pod
            gang = 0
            if record.group:
                gang = self._gangs.setdefault((pod.namespace, record.group), len(self._gangs))
            holder = (pod.namespace, pod.spec.requests)
            code = self._holders.setdefault(holder, len(self._holders))
            level = IDLE if pod.idle_since else pod.priority
            parts = [_part(b, memory) for b in record.bookings]
            # An assignment may name more than the pod asks for.
            excess = max(1.0, sum(parts) / (gpus_held(pod, memory) or 1.0)) if parts else 1.0
            for number, booking in enumerate(record.bookings or (None,)):
                index = self._index()
                found.append(index)
                entries.row[index] = row
                entries.gang[index] = gang
                entries.holder[index] = code
                entries.level[index] = level
                entries.started[index] = pod.started or pod.bound_at or np.inf
                entries.saved[index] = pod.saved_at
                entries.slot[index] = booking.slot if booking else -1
                entries.part[index] = parts[number] / excess if booking else 0.0
                entries.memory[index] = _memory(booking) if booking else 0.0
        if found:
            self._at[row] = found

    def least(
        self,
        rows: NDArray[np.intp],
        highest: Column,
        demand: GpuDemand | None,
        judges: Judges,
        now: float,
    ) -> Least:
        """Return what victims lose at least on rows, if none has a higher priority than this.

        Args:
            rows: where room may be made.
            highest: (rows,), the highest priority among the victims.
            demand: what the preemptor asks of GPUs.
            judges: what is asked of gangs and namespaces.
            now: seconds since the epoch.
        """
        question = _Question(self._accounts, self._entries, rows, highest, now)
        return question.ask(
            demand,
            question.which(question.holder, list(self._holders), judges.all_own),
            *question.fates(list(self._gangs), judges.fate),
        )

    def _index(self) -> int:
        if not self._unused:
            size = len(self._entries.row)
            self._entries.grow()
            self._unused = list(range(2 * size - 1, size - 1, -1))
        return self._unused.pop()


class _Question:
    """One look at some rows; entries of other rows are left out."""

    def __init__(
        self,
        accounts: Accounts,
        entries: _Entries,
        rows: NDArray[np.intp],
        highest: Column,
        now: float,
    ) -> None:
        columns, devices = accounts.columns, accounts.devices
        place = np.full(columns.alive.size, -1, np.intp)
        place[rows] = np.arange(len(rows))
        known = np.flatnonzero((entries.row >= 0) & (place[entries.row] >= 0))
        self._now = now
        self._at = place[entries.row[known]]
        self.gang, self.holder = entries.gang[known], entries.holder[known]
        level = entries.level[known]
        self._idle = level == IDLE
        self._may_go = level <= highest[self._at]
        self._part, self._held = entries.part[known], entries.memory[known]
        saved = entries.saved[known]
        saved[saved > now] = 0.0
        self._age = np.maximum(now - np.maximum(entries.started[known], saved), 0.0)
        self._memory = devices.memory[:, rows]
        self._there = devices.model[:, rows] >= 0
        self._shape = self._there.shape
        slot = entries.slot[known]
        self._on_gpu = (slot >= 0) & (slot < self._shape[0])
        self._cell = np.where(self._on_gpu, slot, 0) * len(rows) + self._at

    def which(
        self, codes: _Codes, keys: Sequence[_Key], ask: Callable[[_Key], bool] | None
    ) -> Mask:
        """Return for which entries the answer about what their code stands for is yes."""
        answers = np.zeros(len(keys), bool)
        if ask is not None:
            for code in np.unique(codes):
                answers[code] = code and ask(keys[code])
        found: Mask = answers[codes]
        return found

    def fates(self, keys: Sequence[Gang], fate: Callable[[Gang], int]) -> tuple[Mask, Mask]:
        """Return which entries are of gangs that break, and which of those that may spare them."""
        fates = np.zeros(len(keys), np.int8)
        for code in np.unique(self.gang):
            fates[code] = fate(keys[code]) if code else 0
        found = fates[self.gang]
        return found > 0, found < 0

    def ask(self, demand: GpuDemand | None, is_own: Mask, breaking: Mask, spare: Mask) -> Least:
        """Return what is lost at least, given whose the entries are, and what their gangs spare."""
        age = np.where(spare | self._idle, 0.0, self._age)
        part = self._part
        # Whatever is asked for, somebody goes.
        any_own, kept, gangs = self._unless(~is_own), self._unless(spare), self._unless(~breaking)
        work = self._smallest(part * age)
        own_gpus = np.zeros(self._shape[1])
        if demand is not None and demand.whole:
            own_gpus = self._sum_of_least(part * is_own, demand.whole)
            any_own = np.maximum(any_own, own_gpus > 0)
            kept = np.maximum(kept, self._sum_of_least((~spare).astype(float), demand.whole) > 0)
            gangs = np.maximum(gangs, self._sum_of_least(breaking.astype(float), demand.whole) > 0)
            work = np.maximum(work, self._sum_of_least(part * age, demand.whole))
        elif demand is not None and demand.memory_mib:
            needed = float(demand.memory_mib)
            any_own = np.maximum(any_own, self._lacks(needed, ~is_own))
            kept = np.maximum(kept, self._lacks(needed, spare))
            gangs = np.maximum(gangs, self._lacks(needed, ~breaking))
            work = np.maximum(work, self._work_for_slice(needed, age))
        # Rounding errors must not lift a bound above what it bounds.
        steps = np.where(np.isfinite(work), np.floor(work * (1 - 1e-9) / STEP), np.inf)
        return Least(own_gpus * (1 - 1e-9), any_own, kept, gangs, steps)

    def _count(self, which: Mask) -> Column:
        counts: Column = np.bincount(self._at[which], minlength=self._shape[1]).astype(float)
        return counts

    def _unless(self, harmless: Mask) -> Column:
        """Return 1 where no pod that may go is harmless, else 0."""
        found: Column = (self._count(self._may_go & harmless) == 0).astype(float)
        return found

    def _smallest(self, weights: Column) -> Column:
        least = np.full(self._shape[1], np.inf)
        np.minimum.at(least, self._at[self._may_go], weights[self._may_go])
        return np.where(np.isfinite(least), least, 0.0)

    def _by_gpu(self, which: Mask, weights: Column) -> Column:
        """Return sums by GPU, shape (GPUs per node, rows)."""
        chosen = which & self._on_gpu
        size = self._shape[0] * self._shape[1]
        sums: Column = np.bincount(self._cell[chosen], weights[chosen], size).astype(float)
        return sums.reshape(self._shape)

    def _sum_of_least(self, weights: Column, gpus: int) -> Column:
        """Return what so many GPUs weigh at least if all that may go leaves them; inf if it cannot.

        A pod that holds several counts in part where only some of its GPUs are needed.
        """
        if gpus > self._shape[0]:
            return np.full(self._shape[1], np.inf)
        weighed = self._by_gpu(self._may_go, weights)
        stuck = self._by_gpu(~self._may_go, np.ones(len(self._at))) > 0
        weighed[stuck | ~self._there] = np.inf
        weighed.sort(axis=0)
        least: Column = weighed[:gpus].sum(axis=0)
        return least

    def _lacks(self, needed: float, harmless: Mask) -> Column:
        """Return 1 where no GPU has room for a slice if only harmless pods go, else 0."""
        stays = ~(self._may_go & harmless)
        free = self._memory - self._by_gpu(stays, self._held)
        fits = np.count_nonzero((free >= needed) & self._there, axis=0) > 0
        return np.where(fits, 0.0, 1.0)

    def _work_for_slice(self, needed: float, age: Column) -> Column:
        """Return what work is lost at least for a slice, on the GPU where that is least."""
        memory = self._held
        free = self._memory - self._by_gpu(np.ones(len(self._at), bool), memory)
        possible = self._memory - self._by_gpu(~self._may_go, memory)
        youngest = np.full(self._shape, np.inf)
        chosen = self._may_go & self._on_gpu
        np.minimum.at(youngest.reshape(-1), self._cell[chosen], age[chosen])
        largest = self._memory.max(axis=0, initial=1.0).reshape(1, -1)
        lacking = np.clip((needed - free) / largest, 0.0, 1.0)
        work = lacking * np.where(np.isfinite(youngest), youngest, 0.0)
        work[(possible < needed) | ~self._there] = np.inf
        least: Column = work.min(axis=0, initial=np.inf)
        return least


def _part(booking: Booking, memory: float) -> float:
    """Return the part of a GPU, as `losses.gpus_held` counts it or less."""
    if booking.whole:
        return 1.0
    held = booking.memory_mib / memory if memory else 1.0
    return min(1.0, max(booking.compute / 100.0, held if booking.memory_mib else 0.0))


def _memory(booking: Booking) -> float:
    return _WHOLE if booking.whole else float(booking.memory_mib)

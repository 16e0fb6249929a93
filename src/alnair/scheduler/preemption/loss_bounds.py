"""What victims lose at least on each row: somebody's own, gangs, and work, beside their priorities.

A table of what each pod holds of each GPU answers that for all rows at once. It knows nothing of
other filters, of pods that hold several GPUs, or of members elsewhere, so it errs on the low side.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

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
_Codes = NDArray[np.int32]


class Least(msgspec.Struct, frozen=True):
    """What victims lose at least on each of some rows, in the order in which it decides."""

    own: Column
    any_own: Column
    kept: Column
    gangs: Column
    steps: Column
    #: The earliest start among the dearest of them, negated.
    started: Column


class Judges(msgspec.Struct, frozen=True):
    """What is asked of gangs and namespaces when bounds are wanted.

    Attributes:
        all_own: whether all that pods of such a kind hold is their namespace's own; None if nothing
            is anybody's.
        fates: per gang, 1 if it breaks for sure if any member goes, -1 if it may spare some, or 0.
    """

    all_own: Callable[[Holder], bool] | None
    fates: Callable[[Iterable[Gang]], list[int]]


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
        #: When work began, when it says that that was saved, and when it says that it started.
        self.since: Column = np.zeros(size)
        self.saved: Column = np.zeros(size)
        self.started: Column = np.zeros(size)

    def grow(self, size: int) -> None:
        """Make room for so many."""
        for name, column in vars(self).items():
            grown = np.full(size, -1 if name in ("row", "slot") else 0, column.dtype)
            grown[: len(column)] = column
            setattr(self, name, grown)

    def put(self, index: Sequence[int], values: Sequence[tuple[float, ...]]) -> None:
        """Set entries; values are in the order of the columns."""
        for column, found in zip(vars(self).values(), zip(*values, strict=True), strict=True):
            column[index] = found


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
        self._noted: dict[int, Sequence[Record]] = {}
        #: By row: whether any pod there is in a gang, or has GPUs and so work to lose.
        self._matters: Mask = np.zeros(self._accounts.columns.alive.size, bool)
        self._gangs: dict[Gang, int] = {("", ""): 0}
        self._holders: dict[Holder, int] = {("", ()): 0}

    @property
    def crowded(self) -> bool:
        """Whether it knows more names than it should, most of them of what is gone."""
        return len(self._gangs) + len(self._holders) > _CODES_KEPT

    def note(self, row: int, records: Sequence[Record]) -> None:
        """Set the pods of a row; they are looked at when something is asked that they answer."""
        self._noted[row] = records
        self._matters[row] = any(r.group or r.pod.spec.gpu for r in records)

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
        if judges.all_own is None and not self._matters[rows].any():
            nothing = np.zeros(len(rows))
            started = np.full(len(rows), -np.inf)
            return Least(nothing, nothing, np.ones(len(rows)), nothing, nothing, started)
        self._take_in()
        question = _Question(self._accounts, self._entries, rows, highest, now)
        return question.ask(
            demand,
            question.owned(list(self._holders), judges.all_own),
            *question.fates(list(self._gangs), judges.fates),
        )

    def _take_in(self) -> None:
        """Look at the pods that were noted since."""
        noted, self._noted = self._noted, {}
        values: list[tuple[float, ...]] = []
        counts: list[tuple[int, int]] = []
        freed: list[int] = []
        for row, records in noted.items():
            freed += self._at.pop(row, ())
            begin = len(values)
            memory = most_memory(self._accounts, row)
            for record in records:
                self._describe(record, row, memory, values)
            counts.append((row, len(values) - begin))
        self._entries.row[freed] = -1
        self._unused += freed
        index = self._indexes(len(values))
        if values:
            self._entries.put(index, values)
        begin = 0
        for row, count in counts:
            self._at[row] = index[begin : begin + count]
            begin += count

    def _describe(
        self, record: Record, row: int, memory: float, values: list[tuple[float, ...]]
    ) -> None:
        """Add the entries of a pod, as the columns have them."""
        pod = record.pod
        gang = 0
        if record.group:
            gang = self._gangs.setdefault((pod.namespace, record.group), len(self._gangs))
        holder = self._holders.setdefault((pod.namespace, pod.spec.requests), len(self._holders))
        level = IDLE if pod.idle_since else pod.priority
        started = pod.started or np.inf
        times = (level, pod.started or pod.bound_at or np.inf, pod.saved_at, started)
        if not record.bookings:
            values.append((row, -1, gang, holder, 0.0, 0.0, *times))
            return
        parts = [_part(b, memory) for b in record.bookings]
        # An assignment may name more than the pod asks for.
        excess = max(1.0, sum(parts) / (gpus_held(pod, memory) or 1.0))
        for part, booking in zip(parts, record.bookings, strict=True):
            held = _memory(booking)
            values.append((row, booking.slot, gang, holder, part / excess, held, *times))

    def _indexes(self, count: int) -> list[int]:
        size = len(self._entries.row)
        if len(self._unused) < count:
            grown = max(2 * size, size + count)
            self._entries.grow(grown)
            self._unused += range(size, grown)
        kept = len(self._unused) - count
        found = self._unused[kept:]
        del self._unused[kept:]
        return found


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
        level, bound = entries.level[known], highest[self._at]
        self._idle = level == IDLE
        self._may_go, self._dearest = level <= bound, level == bound
        self._part, self._held = entries.part[known], entries.memory[known]
        saved = entries.saved[known]
        saved[saved > now] = 0.0
        self._age = np.maximum(now - np.maximum(entries.since[known], saved), 0.0)
        self._started = entries.started[known]
        self._memory = devices.memory[:, rows]
        self._there = devices.model[:, rows] >= 0
        self._shape = self._there.shape
        slot = entries.slot[known]
        self._on_gpu = (slot >= 0) & (slot < self._shape[0])
        self._cell = np.where(self._on_gpu, slot, 0) * len(rows) + self._at

    def owned(self, keys: Sequence[Holder], ask: Callable[[Holder], bool] | None) -> Mask:
        """Return for which entries all that is held of their kind is their namespace's own."""
        answers = np.zeros(len(keys), bool)
        if ask is not None:
            for code in np.flatnonzero(np.bincount(self.holder)).tolist():
                answers[code] = ask(keys[code])
        found: Mask = answers[self.holder]
        return found

    def fates(
        self, keys: Sequence[Gang], ask: Callable[[Iterable[Gang]], list[int]]
    ) -> tuple[Mask, Mask]:
        """Return which entries are of gangs that break, and which of those that may spare them."""
        fates = np.zeros(len(keys), np.int8)
        codes = np.flatnonzero(np.bincount(self.gang))
        fates[codes] = ask([keys[code] for code in codes.tolist()])
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
        # Somebody of the highest priority goes, and nobody who is dearer than these bounds say.
        chosen = self._dearest & (~is_own | (any_own > 0)[self._at])
        chosen &= (spare | (kept > 0)[self._at]) & (~breaking | (gangs > 0)[self._at])
        latest = np.full(self._shape[1], -np.inf)
        np.maximum.at(latest, self._at[chosen], self._started[chosen])
        return Least(own_gpus * (1 - 1e-9), any_own, kept, gangs, steps, -latest)

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

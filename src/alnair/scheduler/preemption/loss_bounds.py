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
        if not noted:
            return
        found: list[tuple[float, ...]] = []
        ends: list[int] = []
        freed: list[int] = []
        number = 0
        for row, records in noted.items():
            freed += self._at.pop(row, ())
            memory = most_memory(self._accounts, row)
            for record in records:
                number += 1
                self._describe(record, (number, row, memory), found)
            ends.append(len(found))
        self._entries.row[freed] = -1
        self._unused += freed
        index = self._indexes(len(found))
        begin = 0
        for row, end in zip(noted, ends, strict=True):
            self._at[row] = index[begin:end]
            begin = end
        if found:
            self._write(index, found)

    def _describe(
        self, record: Record, at: tuple[int, int, float], found: list[tuple[float, ...]]
    ) -> None:
        """Add a pod as it is, once per GPU that it holds; `at` has its number, row and memory."""
        pod = record.pod
        gang = 0
        if record.group:
            gang = self._gangs.setdefault((pod.namespace, record.group), len(self._gangs))
        holder = self._holders.setdefault((pod.namespace, pod.spec.requests), len(self._holders))
        level = IDLE if pod.idle_since else pod.priority
        same = (*at, gang, holder, level, pod.started, pod.bound_at, pod.saved_at)
        if not record.bookings:
            found.append((*same, 1.0, -1, 0.0, 0.0, 0.0))
            return
        asked = gpus_held(pod, at[2])
        for booking in record.bookings:
            whole, compute = booking.whole, booking.compute
            found.append((*same, asked, booking.slot, whole, compute, booking.memory_mib))

    def _write(self, index: Sequence[int], found: Sequence[tuple[float, ...]]) -> None:
        entries = self._entries
        number, row, memory, gang, holder, level, started, bound_at, saved, *gpu = np.array(found).T
        asked, slot, whole, compute, held = gpu
        # As `losses.gpus_held` counts it.
        of_memory = np.where(held > 0, held / np.where(memory > 0, memory, np.maximum(held, 1)), 0)
        part = np.where(whole > 0, 1.0, np.minimum(np.maximum(compute / 100.0, of_memory), 1.0))
        # An assignment may name more than the pod asks for.
        pods = number.astype(np.intp)
        together = np.maximum(np.bincount(pods, part)[pods], 1e-9)
        started[started == 0] = np.inf
        entries.row[index], entries.slot[index] = row, slot
        entries.gang[index], entries.holder[index] = gang, holder
        entries.part[index] = part * np.minimum(asked / together, 1.0)
        entries.memory[index] = np.where(whole > 0, _WHOLE, held)
        entries.level[index], entries.saved[index] = level, saved
        entries.started[index] = started
        since = np.where(np.isfinite(started), started, bound_at)
        entries.since[index] = np.where(since > 0, since, np.inf)

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
        place = np.full(columns.alive.size + 1, -1, np.intp)  # -1 stands for unused entries
        place[rows] = np.arange(len(rows))
        at = place[entries.row]
        known = np.flatnonzero(at >= 0)
        self._at = at[known]
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
        #: What is on no GPU counts beyond the last of them.
        size = self._shape[0] * self._shape[1]
        self._cell = np.where(self._on_gpu, slot * len(rows) + self._at, size)

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
        none = np.zeros(self._shape[1])
        own, any_own, kept, gangs, started = none, none, none + 1.0, none, none - np.inf
        differ = False
        if is_own.any():
            differ = True
            any_own = self._must(demand, is_own)
            if demand is not None and demand.whole:
                own = self._sum_of_least(self._part * is_own, demand.whole)
            elif demand is not None and demand.memory_mib:
                own = self._least_for_slice(float(demand.memory_mib), is_own.astype(float))
        if spare.any():
            differ = True
            kept = self._must(demand, ~spare)
        if breaking.any():
            differ = True
            gangs = self._must(demand, breaking)
        if differ:
            # Who is dearer than these bounds say does not go, or the bounds are exceeded.
            dear = (is_own & (any_own == 0)[self._at]) | (breaking & (gangs == 0)[self._at])
            self._may_go &= ~dear & (spare | (kept > 0)[self._at])
            chosen = self._may_go & self._dearest
            latest = none - np.inf
            np.maximum.at(latest, self._at[chosen], self._started[chosen])
            started = -latest
        work = self._smallest(self._part * age)  # whatever is asked for, somebody goes
        if demand is not None and demand.whole:
            work = np.maximum(work, self._sum_of_least(self._part * age, demand.whole))
        elif demand is not None and demand.memory_mib:
            work = np.maximum(work, self._least_for_slice(float(demand.memory_mib), age))
        # Rounding errors must not lift a bound above what it bounds.
        steps = np.where(np.isfinite(work), np.floor(work * (1 - 1e-9) / STEP), np.inf)
        own = np.round(own * (1 - 1e-9), 6)  # as costs are
        return Least(own, any_own, kept, gangs, steps, started)

    def _must(self, demand: GpuDemand | None, dear: Mask) -> Column:
        """Return 1 where room cannot be made without any of these, else 0."""
        found = self._unless(~dear)
        if demand is not None and demand.whole:
            return np.maximum(found, self._sum_of_least(dear.astype(float), demand.whole) > 0)
        if demand is not None and demand.memory_mib:
            return np.maximum(found, self._lacks(float(demand.memory_mib), ~dear))
        return found

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

    def _by_gpu(self, weights: Column | Mask) -> Column:
        """Return sums by GPU, shape (GPUs per node, rows)."""
        size = self._shape[0] * self._shape[1]
        sums: Column = np.bincount(self._cell, weights, size + 1).astype(float)
        return sums[:size].reshape(self._shape)

    def _sum_of_least(self, weights: Column, gpus: int) -> Column:
        """Return what so many GPUs weigh at least if all that may go leaves them; inf if it cannot.

        A pod that holds several counts in part where only some of its GPUs are needed.
        """
        if gpus > self._shape[0]:
            return np.full(self._shape[1], np.inf)
        weighed = self._by_gpu(weights * self._may_go)
        stuck = self._by_gpu(~self._may_go) > 0
        weighed[stuck | ~self._there] = np.inf
        weighed.sort(axis=0)
        least: Column = weighed[:gpus].sum(axis=0)
        return least

    def _lacks(self, needed: float, harmless: Mask) -> Column:
        """Return 1 where no GPU has room for a slice if only harmless pods go, else 0."""
        stays = ~(self._may_go & harmless)
        free = self._memory - self._by_gpu(self._held * stays)
        fits = np.count_nonzero((free >= needed) & self._there, axis=0) > 0
        return np.where(fits, 0.0, 1.0)

    def _least_for_slice(self, needed: float, values: Column) -> Column:
        """Return what goes at least for a slice, on the GPU where that is least; inf if it cannot.

        Args:
            needed: MiB.
            values: per entry, of a whole GPU.
        """
        memory = self._held
        free = self._memory - self._by_gpu(memory)
        possible = self._memory - self._by_gpu(memory * ~self._may_go)
        chosen = self._may_go & self._on_gpu
        cell = self._cell[chosen]
        # At least one goes, and at least so much memory.
        one, each = np.full((2, *self._shape), np.inf)
        np.minimum.at(one.reshape(-1), cell, (self._part * values)[chosen])
        np.minimum.at(each.reshape(-1), cell, values[chosen])
        largest = self._memory.max(axis=0, initial=1.0).reshape(1, -1)
        lacking = np.clip((needed - free) / largest, 0.0, 1.0)
        least = np.maximum(one, lacking * np.where(np.isfinite(each), each, 0.0))
        least[free >= needed] = 0.0
        least[(possible < needed) | ~self._there] = np.inf
        found: Column = least.min(axis=0, initial=np.inf)
        return found

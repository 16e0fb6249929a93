"""What pods of each priority hold, as columns: where could room be made, and at what cost at least.

Kept current from the rows that changed since it was last asked, so it costs nothing while nobody
preempts.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np

from alnair.model.workload import GpuDemand
from alnair.scheduler.preemption.loss_bounds import Judges, LossTable, Rows
from alnair.scheduler.preemption.losses import IDLE, SHIFT
from alnair.scheduler.state.accounts import Accounts, Record
from alnair.scheduler.state.nodes.columns import Column

#: No room can be made on this row.
NEVER: Final = math.inf
#: Start times kept per row and priority.
_STARTS: Final = 8

Requests = Iterable[tuple[str, int]]


class Bounds(msgspec.Struct, frozen=True):
    """What victims cost at least on each row, (rows,) each, in the order in which it decides."""

    #: The highest priority among them; `NEVER` where no victims would be enough.
    highest: Column
    #: The sum of their priorities, each shifted to be positive.
    total: Column
    count: Column
    #: The earliest start among those of the highest priority, negated.
    started: Column


class _Level:
    """Pods of one priority."""

    def __init__(self, resources: int, rows: int) -> None:
        #: (resources, rows): what they request together, and the most that one does.
        self.held: Column = np.zeros((resources, rows))
        self.most: Column = np.zeros((resources, rows))
        self.count: Column = np.zeros(rows)
        #: (_STARTS, rows): when the last ones started, latest first.
        self.latest: Column = np.full((_STARTS, rows), -math.inf)

    def put(self, row: int, records: Sequence[Record]) -> None:
        """Set the row's pods of this priority."""
        held, most = self.held[:, row], self.most[:, row]
        held[:] = most[:] = 0
        for record in records:
            vector = record.vector
            assert vector is not None  # it is booked
            held[vector.columns] += vector.amounts
            most[vector.columns] = np.maximum(most[vector.columns], vector.amounts)
        starts = sorted((r.pod.started or math.inf for r in records), reverse=True)[:_STARTS]
        self.latest[:, row] = -math.inf
        self.latest[: len(starts), row] = starts
        self.count[row] = len(records)


class Levels:
    """Booked pods by priority; idle ones, if only since a moment ago, count as `IDLE`.

    Args:
        accounts: the books.
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._table = LossTable(accounts)
        #: Rows with pods that changed where they are.
        self._changed: set[int] = set()
        #: By row: what it was read from.
        self._seen: dict[int, tuple[object, ...]] = {}
        self._levels: dict[int, _Level] = {}
        self._read = 0
        self._shape = (0, 0)

    def changed(self, row: int) -> None:
        """Note that a pod on a row changed."""
        self._changed.add(row)

    def bounds(self, requests: Requests, below: float) -> Bounds:
        """Return what victims cost at least, as far as resources say; other filters may ask more.

        Args:
            requests: of the preemptor.
            below: its priority, or infinite if any pod may have to go.
        """
        columns = self._accounts.columns
        wanted = [(columns.resource(name), float(amount)) for name, amount in requests]
        self._refresh()
        n = columns.n
        free = {column: columns.free[column, :n].copy() for column, _ in wanted}
        lacking = {column: amount - columns.free[column, :n] for column, amount in wanted}
        most = {column: np.zeros(n) for column, _ in wanted}
        highest, total, started = np.full(n, NEVER), np.zeros(n), np.zeros(n)
        count, lower, lowest = np.ones(n), np.zeros(n), np.full(n, math.inf)
        rows = np.arange(n)
        for priority in sorted(p for p in self._levels if p < below):
            level = self._levels[priority]
            here = level.count[:n] > 0
            found = np.isinf(highest) & here
            lowest[np.isinf(lowest) & here] = 0.0 if priority == IDLE else priority + SHIFT
            for column, amount in wanted:
                free[column] += level.held[column, :n]
                np.maximum(most[column], level.most[column, :n], out=most[column])
                found &= free[column] >= amount
            at = rows[found]
            for column, _ in wanted:
                each = np.maximum(most[column][at], 1.0)
                count[at] = np.maximum(count[at], np.ceil(lacking[column][at] / each))
            # Even if all of lower priority go, so many of this one must.
            own = np.clip(count[at] - lower[at], 1, np.minimum(level.count[at], _STARTS))
            started[at] = -level.latest[own.astype(np.intp) - 1, at]
            highest[at] = priority
            total[at] = (0.0 if priority == IDLE else priority + SHIFT) + (count[at] - 1) * lowest[
                at
            ]
            lower += level.count[:n]
        return Bounds(highest, total, count, started)

    def keys(
        self, bounds: Bounds, rows: Rows, demand: GpuDemand | None, judges: Judges, now: float
    ) -> list[Column]:
        """Return what victims on some rows cost at least, one column for each thing that decides.

        Args:
            bounds: found just now.
            rows: where room may be made.
            demand: what the preemptor asks of GPUs, if a filter asks for that.
            judges: what is asked of gangs and namespaces.
            now: seconds since the epoch.
        """
        highest = bounds.highest[rows]
        least = self._table.least(rows, highest, demand, judges, now)
        return [
            *(highest, least.own, least.any_own, least.kept, least.gangs, least.steps),
            *(bounds.total[rows], bounds.count[rows]),
            np.maximum(bounds.started[rows], least.started),
        ]

    def _refresh(self) -> None:
        columns = self._accounts.columns
        shape = (len(columns.resources), columns.alive.size)
        changed = columns.booked.since(self._read) if shape == self._shape else None
        self._read = columns.booked.end
        noted, self._changed = self._changed, set()
        if changed is None or self._table.crowded:
            self._shape = shape
            self._levels.clear()
            self._table.clear()
            self._seen.clear()
            noted = set(self._accounts.on_row)
        for row in noted.union(changed or ()):
            self._add(row)

    def _add(self, row: int) -> None:
        here = list(self._accounts.on_row.get(row, {}).values())
        # Rows are mostly noted because room there is held, or was for a moment.
        seen = ([r.pod for r in here], [r.bookings for r in here], self._accounts.devices.gpus[row])
        if self._seen.get(row) == seen:
            return
        self._seen[row] = seen
        self._table.note(row, here)
        by_level: dict[int, list[Record]] = {}
        for record in here:
            priority = IDLE if record.pod.idle_since else record.pod.priority
            by_level.setdefault(priority, []).append(record)
        for priority in by_level:
            if priority not in self._levels:
                self._levels[priority] = _Level(*self._shape)
        for priority, level in self._levels.items():
            records = by_level.get(priority, ())
            if records or level.count[row]:
                level.put(row, records)

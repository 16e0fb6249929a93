"""What pods of each priority hold, as columns: where could room be made, and at what cost at least.

Kept current from the rows that changed since it was last asked, so it costs nothing while nobody
preempts.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from alnair.scheduler.accounts import Accounts, Record
from alnair.scheduler.columns import Column
from alnair.scheduler.victims import IDLE, SHIFT

#: No room can be made on this row.
NEVER: Final = math.inf

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
        #: When the last of them started.
        self.latest: Column = np.full(rows, -math.inf)

    def add(self, row: int, record: Record) -> None:
        vector = record.vector
        assert vector is not None  # it is booked
        self.held[vector.columns, row] += vector.amounts
        most = self.most[vector.columns, row]
        self.most[vector.columns, row] = np.maximum(most, vector.amounts)
        self.count[row] += 1
        self.latest[row] = max(self.latest[row], record.pod.started or math.inf)

    def clear(self, row: int) -> None:
        self.held[:, row] = self.most[:, row] = self.count[row] = 0
        self.latest[row] = -math.inf


class Levels:
    """Booked pods by priority; idle ones, if only since a moment ago, count as `IDLE`.

    Args:
        accounts: the books.
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._levels: dict[int, _Level] = {}
        self._read = 0
        self._shape = (0, 0)

    def bounds(self, requests: Requests, below: int) -> Bounds:
        """Return what victims cost at least, as far as resources say; other filters may ask more.

        Args:
            requests: of the preemptor.
            below: its priority.
        """
        columns = self._accounts.columns
        wanted = [(columns.resource(name), float(amount)) for name, amount in requests]
        self._refresh()
        n = columns.n
        free = {column: columns.free[column, :n].copy() for column, _ in wanted}
        most = {column: np.zeros(n) for column, _ in wanted}
        highest, started = np.full(n, NEVER), np.full(n, -math.inf)
        lowest = np.full(n, math.inf)
        for priority in sorted(p for p in self._levels if p < below):
            level = self._levels[priority]
            here = level.count[:n] > 0
            ok = np.isinf(highest) & here
            lowest[np.isinf(lowest) & here] = priority
            for column, amount in wanted:
                free[column] += level.held[column, :n]
                np.maximum(most[column], level.most[column, :n], out=most[column])
                ok &= free[column] >= amount
            highest[ok] = priority
            started[ok] = -level.latest[:n][ok]
        count = np.ones(n)
        for column, amount in wanted:
            lacking = amount - columns.free[column, :n]
            count = np.maximum(count, np.ceil(lacking / np.maximum(most[column], 1e-9)))
        with np.errstate(invalid="ignore"):
            cheapest = np.where(lowest == IDLE, 0.0, lowest + SHIFT)
            total = np.where(highest == IDLE, 0.0, highest + SHIFT) + (count - 1) * cheapest
        return Bounds(highest, total, count, started)

    def _refresh(self) -> None:
        columns = self._accounts.columns
        shape = (len(columns.resources), columns.alive.size)
        changed = columns.booked.since(self._read) if shape == self._shape else None
        self._read = columns.booked.end
        if changed is None:
            self._shape = shape
            self._levels.clear()
            for row in self._accounts.on_row:
                self._add(row)
            return
        for row in set(changed):
            for level in self._levels.values():
                level.clear(row)
            self._add(row)

    def _add(self, row: int) -> None:
        for record in self._accounts.on_row.get(row, {}).values():
            priority = IDLE if record.pod.idle_since else record.pod.priority
            level = self._levels.get(priority)
            if level is None:
                level = self._levels[priority] = _Level(*self._shape)
            level.add(row, record)

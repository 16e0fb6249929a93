"""The cluster as columns: one row per node, deltas in, dirty rows out.

Quantities are float64, which is exact for the integers that occur (below 2⁵³: 9 PB of memory) and
divides several times faster than int64.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from alnair.model.nodes import Node, Taint
from alnair.scheduler.state.nodes.labels import LabelColumns

Column = NDArray[np.float64]
Mask = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)
#: Rows of the columns: a slice where possible, since that needs no copy.
Rows = slice | NDArray[np.intp]

ALL: Final = slice(None)
#: Node ties are broken by one permutation; ranks are below this.
TIES: Final = 2**20
_BASE_RESOURCES: Final = ("cpu", "memory", "pods")
_PODS: Final = _BASE_RESOURCES.index("pods")
_LOG_LIMIT: Final = 500_000


def single(rows: Rows) -> int | None:
    """Return the row if the rows are a slice of just one, which is what follows most bookings."""
    if isinstance(rows, slice) and rows.start is not None and rows.stop == rows.start + 1:
        row: int = rows.start
        return row
    return None


def of_rows(values: NDArray[T], rows: Rows) -> NDArray[T]:
    """Return these rows of an array, whose last axis they are: a view, or several times faster."""
    found: NDArray[T] = values[..., rows] if isinstance(rows, slice) else values.take(rows, axis=-1)
    return found


def distinct(changed: Sequence[int], n: int) -> Rows | None:
    """Return the distinct rows of a log, as a slice if it is one; None if all are as fast.

    Args:
        changed: rows, perhaps several times.
        n: rows in use.
    """
    if len(changed) > n:
        return None  # telling them apart would take longer
    rows = set(changed)
    if len(rows) == 1:
        (row,) = rows
        return slice(row, row + 1)
    # Rows by an index take about three times as long as a slice of as many.
    return None if 3 * len(rows) > n else np.fromiter(rows, np.intp, len(rows))


class ChangeLog:
    """Rows that changed, in order; readers remember how far they have read."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.start = 0

    @property
    def end(self) -> int:
        """Position after the last change."""
        return self.start + len(self.rows)

    def add(self, row: int) -> None:
        """Note that the row changed."""
        if len(self.rows) >= _LOG_LIMIT:
            self.start += len(self.rows)
            self.rows.clear()
        self.rows.append(row)

    def since(self, position: int) -> list[int] | None:
        """Return the rows changed since the position; None if that is no longer known."""
        return self.rows[position - self.start :] if position >= self.start else None


class Columns:
    """Nodes as columns.

    Args:
        seed: of the permutation that breaks ties.
        order: names of nodes that break ties before all others, the first wins.

    Attributes:
        n: rows in use (some may belong to deleted nodes: `alive` tells).
        epoch: changes when everything computed from columns is void.
        schema: changes when plugins must be compiled again.
        allocatable, free: (resources, rows), in base units.
        scored: (2, rows), cpu and memory requested as scoring counts them.
        tie: (rows,), a higher number wins among equal scores.
        nodes_changed: rows whose node object changed; booked: rows where pods came or went.
    """

    def __init__(self, seed: int = 0, order: Sequence[str] = ()) -> None:
        self._seed = seed.to_bytes(8, "big", signed=True)
        self._first = {name: place for place, name in enumerate(order)}
        self.n = 0
        self.epoch = 0
        self.schema = 0
        self.nodes: list[Node | None] = []
        self.row_of: dict[str, int] = {}
        self._vacant: list[int] = []
        self.resources: dict[str, int] = {name: i for i, name in enumerate(_BASE_RESOURCES)}
        self.allocatable: Column = np.zeros((len(self.resources), 0))
        self.free: Column = np.zeros((len(self.resources), 0))
        self.scored: Column = np.zeros((2, 0))
        self.alive: Mask = np.zeros(0, bool)
        self.unschedulable: Mask = np.zeros(0, bool)
        self.taint_set: NDArray[np.intp] = np.zeros(0, np.intp)
        self.taint_sets: dict[tuple[Taint, ...], int] = {(): 0}
        self.labels = LabelColumns()
        self._tie: Column = np.zeros(0)
        self._ties_stale = False
        self.nodes_changed = ChangeLog()
        self.booked = ChangeLog()

    def __len__(self) -> int:
        return len(self.row_of)

    def resource(self, name: str) -> int:
        """Return the column of a resource, adding it (0 everywhere) when it is new."""
        column = self.resources.get(name)
        if column is None:
            column = self.resources[name] = len(self.resources)
            zeros = np.zeros((1, self.allocatable.shape[1]))
            self.allocatable = np.concatenate([self.allocatable, zeros])
            self.free = np.concatenate([self.free, zeros.copy()])
        return column

    @property
    def tie(self) -> Column:
        """Tie-break column: one order of the names, whatever the order of their arrival.

        Names of the given order go first, then the others by a seeded permutation.
        """
        if self._ties_stale:
            last = len(self._first)
            order = sorted(
                self.row_of,
                key=lambda name: (
                    self._first.get(name, last),
                    hashlib.blake2b(name.encode(), key=self._seed).digest(),
                ),
            )
            self._tie = np.zeros(self.n)
            self._tie[[self.row_of[name] for name in order]] = TIES - 1.0 - np.arange(len(order))
            self._ties_stale = False
        return self._tie

    def pods(self, rows: Rows) -> Column:
        """Return how many pods are on each row."""
        found: Column = of_rows(self.allocatable[_PODS], rows) - of_rows(self.free[_PODS], rows)
        return found

    def pods_on(self, row: int) -> float:
        """Return how many pods are on the row."""
        return float(self.allocatable.item(_PODS, row) - self.free.item(_PODS, row))

    def put(self, node: Node) -> int:
        """Add or update a node; returns its row. What is booked on it stays booked."""
        row = self.row_of.get(node.name)
        if row is None:
            row = self._new_row(node.name)
        old = self.nodes[row]
        before: Mapping[str, int] = old.allocatable if old else {}
        for name in {**before, **node.allocatable}:
            column = self.resource(name)
            amount = node.allocatable.get(name, 0)
            self.free[column, row] += amount - self.allocatable[column, row]
            self.allocatable[column, row] = amount
        self.nodes[row] = node
        self.alive[row] = True
        self.unschedulable[row] = node.unschedulable
        if node.taints not in self.taint_sets:
            self.taint_sets[node.taints] = len(self.taint_sets)
            self.schema += 1
        self.taint_set[row] = self.taint_sets[node.taints]
        self.labels.set(row, node.labels)
        self.nodes_changed.add(row)
        return row

    def remove(self, name: str) -> int | None:
        """Forget a node, on which nothing may be booked any more; returns the row it had."""
        row = self.row_of.pop(name, None)
        if row is None:
            return None
        self.nodes[row] = None
        self.alive[row] = False
        self.allocatable[:, row] = 0
        self.free[:, row] = 0
        self.scored[:, row] = 0
        self.labels.set(row, {})
        self._vacant.append(row)
        # The others keep their ranks: what is cached and what is computed from now on must agree.
        self.nodes_changed.add(row)
        return row

    def book(
        self, row: int, columns: NDArray[np.intp], amounts: Column, scored: Sequence[float]
    ) -> None:
        """Take resources of a row (negative amounts give them back)."""
        self.free[columns, row] -= amounts
        self.scored[0, row] += scored[0]
        self.scored[1, row] += scored[1]
        self.booked.add(row)

    def _new_row(self, name: str) -> int:
        # The permutation shifts for others too, so everything cached on it is void.
        self._ties_stale = True
        self.epoch += 1
        if self._vacant:
            row = self._vacant.pop()
        else:
            row = self.n
            self.n += 1
            self.nodes.append(None)
            if self.n > self.alive.size:
                self._grow()
        self.row_of[name] = row
        return row

    def _grow(self) -> None:
        extra = max(64, self.alive.size // 4)
        self._pad(extra)
        self.labels.grow(self.alive.size)

    def _pad(self, extra: int) -> None:
        self.allocatable = np.pad(self.allocatable, ((0, 0), (0, extra)))
        self.free = np.pad(self.free, ((0, 0), (0, extra)))
        self.scored = np.pad(self.scored, ((0, 0), (0, extra)))
        self.alive = np.pad(self.alive, (0, extra))
        self.unschedulable = np.pad(self.unschedulable, (0, extra))
        self.taint_set = np.pad(self.taint_set, (0, extra))

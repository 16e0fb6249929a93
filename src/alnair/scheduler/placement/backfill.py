"""EASY backfill: a large gang that has waited long gets the nodes on which it can start soonest.

Without it, small pods that fit now overtake a gang that does not, again and again. The first unit
of the queue that has waited for `patience` seconds gets a **reservation**: the nodes on which it
will fit when running pods have ended, by their time limits, and the time when that is. From then on
a unit behind it may use those nodes only if it ends before that time; other nodes are free to all.
So the holder starts no later than the reservation says, as long as pods keep to their limits.

Source: D. Lifka, The ANL/IBM SP scheduling system, 1995 (EASY: one reservation, for the first).
"""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.queue.unit import Place, SortKey, Unit
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.nodes.columns import Mask

#: Seconds that a unit waits before it gets a reservation.
PATIENCE: Final = 300.0
#: Seconds between looks at the reservation: running pods end early, and others come.
_LOOK_AGAIN: Final = 30.0
#: Units that are considered, in the order of the queue; some may not fit even an empty cluster.
_CONSIDERED: Final = 4
#: Moments that are tried, at most: a reservation may be so much later than it had to be.
_MOMENTS: Final = 64


#: When a pod ends, its uid for the order of equals, and its record.
_End = tuple[float, str, Record]


class Reservation(msgspec.Struct, frozen=True):
    """Nodes that are kept for a unit; `until` is when it fits there, seconds since the epoch."""

    holder: Unit
    rows: tuple[int, ...]
    until: float


class Backfill:
    """Gives the reservation, and says which nodes it leaves to others.

    Args:
        accounts: the books.
        patience: seconds that a unit waits before it gets a reservation; None = for ever.

    Attributes:
        place: tries to place so many of a unit's pods, by the rules of their gang, and returns the
            statement, on which they come first. The engine sets it: it rests on what admits pods.
    """

    place: Callable[[Sequence[Record], int, float], Statement]

    def __init__(self, accounts: Accounts, patience: float | None = PATIENCE) -> None:
        self.reservation: Reservation | None = None
        self._accounts = accounts
        self._patience = patience
        self._looked = 0.0
        #: What the last look saw: with the same, the next one finds the same.
        self._seen: tuple[object, ...] = ()

    def allowed(self, unit: Unit, record: Record, now: float) -> Mask | None:
        """Return the rows that a pod of the unit may use now, None if it may use all."""
        kept = self.reservation
        if kept is None or unit is kept.holder or _order(unit) < _order(kept.holder):
            return None
        if not kept.holder.pods:  # it was placed
            return None
        limit = record.pod.time_limit
        if limit and now + limit <= kept.until:
            return None
        allowed = np.ones(self._accounts.columns.n, bool)
        allowed[list(kept.rows)] = False
        return allowed

    def why(self) -> str:
        """Return what to tell the owner of a pod that is kept off reserved nodes."""
        kept = self.reservation
        assert kept is not None
        who = kept.holder.name
        return (
            f"{len(kept.rows)} node(s) are reserved for {who}, which has waited longer: only pods "
            "whose activeDeadlineSeconds ends before it starts may use them"
        )

    def due(self, waiting: int) -> float | None:
        """Return when to look next, given how many units wait; None if there is no need."""
        if self._patience is None:
            return None
        if self.reservation is not None or (waiting and self._accounts.limited):
            return self._looked + _LOOK_AGAIN
        return None

    def look(self, units: Iterable[Unit], lacking: Mapping[str, int], now: float) -> bool:
        """Give, renew or end the reservation; returns whether others may use other nodes now.

        Args:
            units: of the queue.
            lacking: by unit key, how many pods of a gang must be placed together.
            now: seconds since the epoch.
        """
        before = self.reservation
        self._looked = now
        patience = self._patience if self._patience is not None else math.inf
        patient = heapq.nsmallest(
            _CONSIDERED, (u for u in units if _waits(u) and now - _since(u) >= patience), key=_order
        )
        waiting = tuple((u.key, len(u.pods), lacking.get(u.key, 1)) for u in patient)
        if self._seen == (waiting, *self._state()) and (before is None or before.until > now):
            return False
        self.reservation = None
        if self._accounts.limited:
            for unit in patient:
                if found := self._reserve(unit, lacking.get(unit.key, 1), now):
                    self.reservation = found
                    break
        self._seen = (waiting, *self._state())  # looking itself books, and takes it back
        return before is not None and before != self.reservation

    def _state(self) -> tuple[int, int, int]:
        accounts = self._accounts
        columns = accounts.columns
        changes = accounts.objects.changes + accounts.cluster.observations.changes
        return columns.booked.end, columns.nodes_changed.end, changes

    def _reserve(self, unit: Unit, count: int, now: float) -> Reservation | None:
        """Return where and when the unit fits by the limits of what runs; None if it does not."""
        if len(unit.pods) < count:
            return None
        ends = sorted(
            (
                (max(r.placed_at + r.pod.time_limit, now), r.pod.uid, r)
                for r in self._accounts.records.values()
                if r.row >= 0 and r.state is State.BOUND and r.pod.time_limit
            ),
        )
        pods = sorted(
            unit.pods.values(), key=lambda r: (-r.pod.priority, r.pod.created, r.pod.name)
        )
        if count == 1 and (found := self._soonest_node(unit, pods, ends, now)):
            return found
        steps = -(-len(ends) // _MOMENTS)
        counts = [*range(steps, len(ends), steps), len(ends)] if ends else []
        best = None
        low, high, stride = 0, len(counts), 1
        while low < high:  # the fewest ended pods with which it fits: few are cheap to try
            middle = (low + high) // 2 if best else min(low + stride - 1, high - 1)
            gone = [r for _, _, r in ends[: counts[middle]]]
            rows = self._fits(pods, count, gone, now)
            if rows is None:
                low, stride = middle + 1, 2 * stride
            else:
                high = middle
                best = Reservation(unit, rows, ends[counts[middle] - 1][0])
        return best

    def _soonest_node(
        self, unit: Unit, pods: Sequence[Record], ends: Sequence[_End], now: float
    ) -> Reservation | None:
        """Return the node on which one pod fits first; None if a few tries do not tell.

        Whether it fits on a node depends on that node's pods, but for rules about other pods
        around. So only nodes are tried on which enough ends, the soonest first.
        """
        columns = self._accounts.columns
        asked = [(name, columns.resource(name), amount) for name, amount in pods[0].spec.requests]
        by_row: dict[int, list[_End]] = {}
        for end in ends:
            by_row.setdefault(end[2].row, []).append(end)
        enough = []
        for row, here in by_row.items():
            lack = {name: amount - columns.free[column, row] for name, column, amount in asked}
            lack = {name: amount for name, amount in lack.items() if amount > 0}
            for number, (when, _, record) in enumerate(here, 1):
                for name, amount in record.spec.requests:
                    if name in lack:
                        lack[name] -= amount
                if all(amount <= 0 for amount in lack.values()):
                    enough.append((when, row, number))
                    break
        heapq.heapify(enough)
        for _ in range(_MOMENTS):
            if not enough:
                break
            when, row, number = heapq.heappop(enough)
            here = by_row[row]
            if rows := self._fits(pods, 1, [r for _, _, r in here[:number]], now):
                return Reservation(unit, rows, when)
            if number < len(here):
                heapq.heappush(enough, (here[number][0], row, number + 1))
        return None

    def _fits(
        self, pods: Sequence[Record], count: int, gone: Sequence[Record], now: float
    ) -> tuple[int, ...] | None:
        with self._accounts.without(gone):
            statement = self.place(pods, count, now)
            placed = statement.placed[:count]
            rows = {r.row for r in placed}
            fits = len(placed) == count
            statement.rollback()
        return tuple(sorted(rows)) if fits else None


def _waits(unit: Unit) -> bool:
    """Return whether room would help the unit: not if it is parked until it changes itself."""
    if unit.place is Place.PARKED and unit.waiting is None:
        return False
    return bool(unit.pods) and unit.place is not Place.NOWHERE


def _since(unit: Unit) -> float:
    return min(r.queued_at for r in unit.pods.values())


def _order(unit: Unit) -> tuple[SortKey, int]:
    return unit.standing, unit.order

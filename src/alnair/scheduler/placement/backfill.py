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
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from alnair.scheduler.placement.admission import Admission
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.reservation import Reservation, waiting_order
from alnair.scheduler.placement.unit_placement import place_unit
from alnair.scheduler.queue.unit import Place, Unit
from alnair.scheduler.state.accounts import Record, State

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


class Backfill:
    """Gives the reservation, renews and ends it.

    Args:
        context: what to decide from.
        admission: that keeps others off the reserved nodes.
        patience: seconds that a unit waits before it gets a reservation; None = for ever.
    """

    def __init__(
        self, context: EngineContext, admission: Admission, patience: float | None = PATIENCE
    ) -> None:
        self._context = context
        self._accounts = context.accounts
        self._admission = admission
        self._reserved = admission.reserved
        self._patience = patience
        self._looked = 0.0
        #: What the last look saw: with the same, the next one finds the same.
        self._seen: tuple[object, ...] = ()

    def follow(self, now: float) -> bool:
        """Look if it is time to; returns whether others may use other nodes now."""
        due = self.next_look()
        if due is None or due > now:
            return False
        units = list(self._context.members.units())
        lacking = {state.unit.key: state.lacking() for state in self._context.gangs.all()}
        return self._look(units, lacking, now)

    def next_look(self) -> float | None:
        """Return when `follow` has something to do without an event; None if never."""
        if self._patience is None:
            return None
        waiting = len(self._context.queue)
        if self._reserved.reservation is not None or (waiting and self._accounts.limited):
            return self._looked + _LOOK_AGAIN
        return None

    def _look(self, units: Iterable[Unit], lacking: Mapping[str, int], now: float) -> bool:
        """Give, renew or end the reservation; returns whether others may use other nodes now.

        Args:
            units: of the queue.
            lacking: by unit key, how many pods of a gang must be placed together.
            now: seconds since the epoch.
        """
        before = self._reserved.reservation
        self._looked = now
        patience = self._patience if self._patience is not None else math.inf
        patient = heapq.nsmallest(
            _CONSIDERED,
            (u for u in units if _waits(u) and now - _since(u) >= patience),
            key=waiting_order,
        )
        waiting = tuple((u.key, len(u.pods), lacking.get(u.key, 1)) for u in patient)
        if self._seen == (waiting, *self._state()) and (before is None or before.until > now):
            return False
        self._reserved.reservation = None
        if self._accounts.limited:
            for unit in patient:
                if found := self._reserve(unit, lacking.get(unit.key, 1), now):
                    self._reserved.reservation = found
                    break
        self._seen = (waiting, *self._state())  # looking itself books, and takes it back
        return before is not None and before != self._reserved.reservation

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
            statement = place_unit(self._context, self._admission, pods, count, now)
            placed = statement.placed[:count]
            rows = {r.row for r in placed}
            fits = len(placed) == count
            statement.rollback()
        return tuple(sorted(rows)) if fits else None


def _waits(unit: Unit) -> bool:
    """Return whether room would help the unit: not if it is parked until it changes itself."""
    if unit.place is Place.PARKED and unit.waiting is None:
        return False
    return bool(unit.pods) and unit.place is not Place.NOT_QUEUED


def _since(unit: Unit) -> float:
    return min(r.queued_at for r in unit.pods.values())

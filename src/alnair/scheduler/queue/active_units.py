"""The units to try now, in turn: by priority, then by fair share among tenants, then by age.

A tenant is a namespace with a quota; all others are one tenant. Shares change with every placement,
so what is ordered by them is tenants (their first units), not all units.
"""

import heapq
from collections.abc import Callable

from alnair.scheduler.queue.unit import SortKey, Unit

#: Orders units of one tenant.
_Entry = tuple[SortKey, int, int, Unit]
#: Orders tenants: priority of the first unit, the tenant's turn, then as the units themselves.
_Turn = tuple[float | str, tuple[float, ...], SortKey, int]


class Active:
    """A heap of units per tenant, and a heap of tenants; stale entries are dropped when met.

    Args:
        turn: when a tenant's turn is; smaller comes first. It may change at any time; `refresh` is
            told if it may come earlier.
    """

    def __init__(self, turn: Callable[[str], tuple[float, ...]]) -> None:
        self._turn = turn
        self._units: dict[str, list[_Entry]] = {}
        self._tenants: list[tuple[_Turn, str]] = []

    def push(self, unit: Unit, tenant: str) -> None:
        """Add a unit; it is valid as long as its ticket does not change."""
        heap = self._units.setdefault(tenant, [])
        entry = (unit.sort, unit.order, unit.ticket, unit)
        heapq.heappush(heap, entry)
        if heap[0] is entry:
            self._line_up(tenant)

    def refresh(self, tenant: str) -> None:
        """Note that the tenant's turn may come earlier than it was."""
        if self._first(tenant) is not None:
            self._line_up(tenant)

    def pop(self) -> Unit | None:
        """Take the first unit out; the caller marks it so that its ticket changes."""
        while self._tenants:
            seen, tenant = heapq.heappop(self._tenants)
            first = self._first(tenant)
            if first is None:
                continue
            turn = self._turn_of(tenant, first)
            if turn != seen:  # its share has changed, or its first unit
                heapq.heappush(self._tenants, (turn, tenant))
                continue
            heapq.heappop(self._units[tenant])
            if self._first(tenant) is not None:
                self._line_up(tenant)
            return first[3]
        return None

    def _line_up(self, tenant: str) -> None:
        first = self._units[tenant][0]
        heapq.heappush(self._tenants, (self._turn_of(tenant, first), tenant))

    def _turn_of(self, tenant: str, first: _Entry) -> _Turn:
        sort, order, _, _ = first
        return sort[0] if sort else 0.0, self._turn(tenant), sort, order

    def _first(self, tenant: str) -> _Entry | None:
        heap = self._units.get(tenant)
        while heap:
            _, _, ticket, unit = heap[0]
            if unit.is_active(ticket):
                return heap[0]
            heapq.heappop(heap)
        self._units.pop(tenant, None)
        return None

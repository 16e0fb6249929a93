"""The reservation: nodes that are kept for what has waited long, and who may use them meanwhile."""

import msgspec
import numpy as np

from alnair.scheduler.queue.unit import SortKey, Unit
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.nodes.columns import Columns, Mask


class Reservation(msgspec.Struct, frozen=True):
    """Nodes that are kept for a unit; `until` is when it fits there, seconds since the epoch."""

    holder: Unit
    rows: tuple[int, ...]
    until: float


class Reserved:
    """Says which nodes the reservation leaves to others.

    Args:
        columns: nodes.

    Attributes:
        reservation: the present one; `alnair.scheduler.placement.backfill` gives and ends it.
    """

    def __init__(self, columns: Columns) -> None:
        self.reservation: Reservation | None = None
        self._columns = columns

    def allowed(self, unit: Unit, record: Record, now: float) -> Mask | None:
        """Return the rows that a pod of the unit may use now, None if it may use all."""
        kept = self.reservation
        if kept is None or unit is kept.holder or waiting_order(unit) < waiting_order(kept.holder):
            return None
        if not kept.holder.pods:  # it was placed
            return None
        limit = record.pod.time_limit
        if limit and now + limit <= kept.until:
            return None
        allowed = np.ones(self._columns.n, bool)
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


def waiting_order(unit: Unit) -> tuple[SortKey, int]:
    """Return the key that sorts units by who waits before whom, whatever became of their tries."""
    return unit.sort_by_age, unit.order

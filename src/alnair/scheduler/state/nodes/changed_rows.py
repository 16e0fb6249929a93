"""Which rows changed since somebody last asked: for what plugins keep per row across classes."""

from alnair.scheduler.state.nodes.columns import Columns, Rows, distinct


class Renewal:
    """Remembers how far its owner has followed nodes and bookings.

    Args:
        columns: of the cluster.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._epoch = -1
        self._nodes_read = 0
        self._booked_read = 0

    def due(self) -> Rows | None:
        """Return the rows that changed since the last call, all of them at the first; None = none.

        A slice from 0 to the number of rows means all: there may be more of them than before.
        """
        columns = self._columns
        nodes = columns.nodes_changed.since(self._nodes_read)
        booked = columns.booked.since(self._booked_read)
        renumbered = self._epoch != columns.epoch
        self._epoch = columns.epoch
        self._nodes_read = columns.nodes_changed.end
        self._booked_read = columns.booked.end
        rows = None
        if not renumbered and nodes is not None and booked is not None:
            if not nodes and not booked:
                return None
            rows = distinct(nodes + booked, columns.n)
        return slice(0, columns.n) if rows is None else rows

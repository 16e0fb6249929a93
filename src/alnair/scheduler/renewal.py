"""Which rows changed since somebody last asked: for what plugins keep per row across classes."""

from typing import Final

import numpy as np

from alnair.scheduler.columns import Columns, Rows

#: More than this part of the rows: computing all of them without an index is as fast.
_MANY: Final = 0.5


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
        everything = slice(0, columns.n)
        if renumbered or nodes is None or booked is None:
            return everything
        if not nodes and not booked:
            return None
        changed = set(booked)
        changed.update(nodes)
        if len(changed) == 1:
            (row,) = changed
            return slice(row, row + 1)
        if len(changed) > _MANY * columns.n:
            return everything
        return np.fromiter(changed, np.intp, len(changed))

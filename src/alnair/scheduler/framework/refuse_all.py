"""A filter that refuses every node for the same reason."""

from collections.abc import Iterable

import numpy as np

from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.state.nodes.columns import Columns, Mask, Rows


class RefuseAll:
    """Refuses every node, since what is missing is not a matter of nodes."""

    depends = Depends.NODE

    def __init__(self, text: str, columns: Columns, *, error: bool = False) -> None:
        self._reason = Reason(text, unresolvable=True, error=error)
        self._columns = columns

    def __call__(self, rows: Rows) -> Mask:
        """Return False for every row."""
        return np.zeros(self._columns.alive[rows].size, bool)

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        """Return the one reason."""
        yield self._reason, ~self(rows)

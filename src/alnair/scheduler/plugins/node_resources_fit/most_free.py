"""The most that any node has free of each resource: who asks for more fits nowhere."""

from collections.abc import Iterable

from alnair.scheduler.state.nodes.columns import Columns


class MostFree:
    """Maxima over all nodes, computed anew when something changed and somebody asks.

    Args:
        columns: of the cluster.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._most: list[float] = []
        self._read: tuple[int, ...] = ()

    def may_hold(self, wanted: Iterable[tuple[str, int]]) -> bool:
        """Return False if no node can hold these amounts; True does not say that one can."""
        columns = self.columns
        now = (columns.booked.end, columns.nodes_changed.end, len(columns.resources), columns.n)
        if now != self._read:
            self._read = now
            self._most = columns.free[:, : columns.n].max(axis=1, initial=0.0).tolist()
        for name, amount in wanted:
            column = columns.resources.get(name)
            if amount > (0.0 if column is None else self._most[column]):
                return False
        return True

"""What waiting classes ask for as numbers, so that all of them are compared with nodes at once."""

from collections.abc import Hashable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import QuickPlugin
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows

#: Amounts that are compared. Whoever needs further ones is not told apart by them: its filters are
#: run then.
_MOST_AMOUNTS: Final = 64


class ClassNeeds:
    """A table of what classes need at least, by the number of the class.

    Args:
        cluster: Whose nodes they are compared with.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._amounts: dict[tuple[str, Hashable], int] = {}
        self._plugins: list[tuple[QuickPlugin, Hashable]] = []
        #: (amounts, classes); what a class does not need is -inf.
        self._needs: Column = np.zeros((0, 0))

    @property
    def count(self) -> int:
        """Number of amounts that are compared."""
        return len(self._plugins)

    def clear(self, number: int) -> None:
        """Let a class need nothing."""
        self._grow(number + 1)
        self._needs[:, number] = -np.inf

    def put(self, number: int, spec: PodSpec, plugins: Iterable[QuickPlugin]) -> None:
        """Note what a class needs, instead of the class that had the number before."""
        wanted: list[float] = [-np.inf] * _MOST_AMOUNTS
        for plugin in plugins:
            for what, amount in plugin.needs(spec):
                row = self._row(plugin, what)
                if row is not None and amount > wanted[row]:
                    wanted[row] = amount
        self._grow(number + 1)
        self._needs[:, number] = wanted[: len(self._plugins)]

    def there(self, rows: Rows) -> Column:
        """Return what nodes have, shape (amounts, rows)."""
        found = [plugin.amount(what, rows, self._cluster) for plugin, what in self._plugins]
        if not found:
            return np.zeros((0, _length(rows)))
        return np.stack(found)

    def within(self, numbers: NDArray[np.intp] | slice, most: Column) -> NDArray[np.intp]:
        """Return the places, among these classes, of those that need no more than this.

        Args:
            numbers: Of classes.
            most: (amounts,).
        """
        left: Mask | None = None
        for needs, amount in zip(self._needs, most, strict=True):
            within = needs[numbers] <= amount
            left = within if left is None else left & within
            if not np.count_nonzero(left):
                break
        if left is None:
            left = np.ones(len(np.arange(self._needs.shape[1])[numbers]), bool)
        return np.flatnonzero(left)

    def beyond(self, most: Column) -> Mask:
        """Return, by number of the class, whether it needs more than this, shape (amounts,)."""
        found: Mask = np.logical_or.reduce(self._needs > most[:, None], axis=0)
        return found

    def fitting(self, numbers: NDArray[np.intp], there: Column) -> Mask:
        """Return which of these classes need no more than which node has.

        Args:
            numbers: Of classes.
            there: (amounts, rows), as `there` returned it.

        Returns:
            The shape (classes, rows).
        """
        fits = np.ones((len(numbers), there.shape[1]), bool)
        for needs, amounts in zip(self._needs, there, strict=True):
            fits &= needs[numbers, None] <= amounts
        return fits

    def _row(self, plugin: QuickPlugin, what: Hashable) -> int | None:
        """Return the row of an amount, which is added if it is new and there is room."""
        key = (plugin.name, what)
        row = self._amounts.get(key)
        if row is None and len(self._amounts) < _MOST_AMOUNTS:
            row = self._amounts[key] = len(self._plugins)
            self._plugins.append((plugin, what))
        return row

    def _grow(self, classes: int) -> None:
        amounts, size = self._needs.shape
        more = len(self._plugins) - amounts
        wider = 0 if classes <= size else max(64, size, classes - size)
        if more or wider:
            self._needs = np.pad(self._needs, ((0, more), (0, wider)), constant_values=-np.inf)


def _length(rows: Rows) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)

"""Node labels as columns of interned values, made when a key is first asked for."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

#: The node has no such label.
ABSENT = -1


class LabelColumns:
    """Label values per row; keys that nobody selects on cost nothing."""

    def __init__(self) -> None:
        self._labels: list[Mapping[str, str]] = []
        self._values: dict[str, dict[str, int]] = {}
        self._columns: dict[str, NDArray[np.int32]] = {}
        self._keys: frozenset[str] | None = None
        self._size = 0

    def grow(self, size: int) -> None:
        """Make room for `size` rows."""
        self._labels.extend({} for _ in range(size - self._size))
        for key, column in self._columns.items():
            self._columns[key] = np.pad(column, (0, size - self._size), constant_values=ABSENT)
        self._size = size

    def set(self, row: int, labels: Mapping[str, str]) -> None:
        """Replace the labels of a row."""
        self._labels[row] = labels
        self._keys = None
        for key, column in self._columns.items():
            value = labels.get(key)
            column[row] = ABSENT if value is None else self.value(key, value)

    def column(self, key: str) -> NDArray[np.int32]:
        """Return the interned value of the label per row, `ABSENT` where there is none."""
        column = self._columns.get(key)
        if column is None:
            column = np.fromiter(
                (
                    ABSENT if (value := labels.get(key)) is None else self.value(key, value)
                    for labels in self._labels
                ),
                np.int32,
                self._size,
            )
            self._columns[key] = column
        return column

    def value(self, key: str, value: str) -> int:
        """Return the number that stands for a value of a key."""
        values = self._values.setdefault(key, {})
        return values.setdefault(value, len(values))

    def values(self, key: str) -> list[str]:
        """Return all values seen of a key; the position is the number that stands for it."""
        return list(self._values.get(key, ()))

    def keys(self) -> frozenset[str]:
        """Return the keys of all labels that there are; kept until a node's labels are set."""
        if self._keys is None:
            self._keys = frozenset().union(*self._labels)
        return self._keys

"""Which container images are on which nodes."""

from collections.abc import Iterable

import numpy as np

from alnair.model.nodes import Image
from alnair.scheduler.state.nodes.columns import Column


def image_kind(name: str) -> str:
    """Return the kind of object under which changes of an image's nodes are noted."""
    return f"Image {name}"


class NodeImages:
    """Images by name, and the rows that have them; what nobody has costs nothing.

    Nodes have the same images: so an image is known once, with the set of rows that have it.
    """

    def __init__(self) -> None:
        self._on_row: dict[int, dict[Image, None]] = {}
        self._rows: dict[Image, set[int]] = {}
        self._named: dict[str, dict[Image, set[int]]] = {}
        #: Names that pods asked for.
        self._asked: set[str] = set()

    def put(self, row: int, images: Iterable[Image]) -> list[str]:
        """Replace the images of a row; returns what came or went of the names asked for."""
        old, new = self._on_row.get(row, {}), dict.fromkeys(images)
        if old.keys() == new.keys():
            return []
        if new:
            self._on_row[row] = new
        else:
            self._on_row.pop(row, None)
        came, went = [i for i in new if i not in old], [i for i in old if i not in new]
        for image in came:
            rows = self._rows.get(image)
            if rows is None:
                rows = self._rows[image] = set()
                for name in image.names:
                    self._named.setdefault(name, {})[image] = rows
            rows.add(row)
        for image in went:
            self._rows[image].discard(row)
            if not self._rows[image]:
                self._forget(image)
        if not self._asked:
            return []
        names = (name for image in (*came, *went) for name in image.names)
        return [name for name in dict.fromkeys(names) if name in self._asked]

    def sizes(self, name: str, size: int) -> Column | None:
        """Return the bytes of an image on each row, shape (size,), 0 where it is not.

        Returns:
            None if no node has an image of that name.
        """
        self._asked.add(name)
        found = self._named.get(name)
        if not found:
            return None
        column = np.zeros(size)
        for image, rows in found.items():
            column[np.fromiter(rows, np.intp, len(rows))] = image.size
        return column

    def _forget(self, image: Image) -> None:
        del self._rows[image]
        for name in image.names:
            named = self._named.get(name, {})
            named.pop(image, None)
            if not named:
                self._named.pop(name, None)

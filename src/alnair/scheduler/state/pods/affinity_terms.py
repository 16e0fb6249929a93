"""Affinity terms that pods on nodes hold, found by the labels of a pod that they may be about.

Each distinct term of a namespace is kept once, with its holders per row. A term whose selector asks
for one of some values of a label is filed under these pairs, so a pod is compared with the terms of
its own labels, however many there are of others'.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from alnair.model.workload import Labels, PodTerm
from alnair.scheduler.state.nodes.columns import Column
from alnair.scheduler.state.pods.label_selectors import anchors

#: A term held on more rows than this has its counts as a column, 8 bytes per row.
_SPARSE: Final = 64
#: Terms without holders that are kept, besides as many as have some.
_IDLE: Final = 256

Pair = tuple[str, str]


class HeldTerm:
    """A term of pods that are on nodes, with the namespace of these pods.

    Attributes:
        rows: row → number of pods there that hold the term.
        version: changes with the holders.
    """

    __slots__ = ("_column", "namespace", "rows", "term", "version")

    def __init__(self, term: PodTerm, namespace: str) -> None:
        self.term = term
        self.namespace = namespace
        self.rows: dict[int, int] = {}
        self.version = 0
        self._column: Column | None = None

    def change(self, row: int, sign: int) -> None:
        """Note that a pod on the row holds the term (1), or that one less does (-1)."""
        count = self.rows.get(row, 0) + sign
        if count:
            self.rows[row] = count
        else:
            del self.rows[row]
        self.version += 1
        if self._column is None:
            return
        if len(self.rows) <= _SPARSE // 2 or row >= self._column.size:
            self._column = None
        else:
            self._column[row] = count

    def add_to(self, column: Column, weight: float = 1.0) -> None:
        """Add the weighted number of holders to each row of a column."""
        if len(self.rows) <= _SPARSE:
            for row, count in self.rows.items():
                column[row] += weight * count
            return
        if self._column is None or self._column.size != column.size:
            self._column = np.zeros(column.size)
            self._column[list(self.rows)] = list(self.rows.values())
        column += self._column if weight == 1.0 else weight * self._column


class HeldTerms:
    """All held terms of one kind, such as required anti-affinity.

    Attributes:
        version: changes with every change of holders.
    """

    def __init__(self) -> None:
        self.version = 0
        self._terms: dict[tuple[PodTerm, str], HeldTerm] = {}
        self._by_pair: dict[Pair | None, list[HeldTerm]] = {}
        self._purges = 0
        self._held = 0

    def __iter__(self) -> Iterator[HeldTerm]:
        return (held for held in self._terms.values() if held.rows)

    def __bool__(self) -> bool:
        return self._held > 0

    def change(self, row: int, term: PodTerm, namespace: str, sign: int) -> None:
        """Note that a pod of the namespace on the row holds the term, or does not any more."""
        held = self._terms.get((term, namespace))
        if held is None:
            held = self._terms[term, namespace] = HeldTerm(term, namespace)
            self._file(held)
        before = bool(held.rows)
        held.change(row, sign)
        self._held += bool(held.rows) - before
        self.version += 1
        # A term often comes back soon, as when a gang is tried; so it is not forgotten at once.
        if sign < 0 and len(self._terms) > 2 * self._held + _IDLE:
            self._purge()

    def edition(self, labels: Labels) -> tuple[int, ...]:
        """Return what changes when `about` may return other terms for these labels."""
        known = self._by_pair.get
        return (self._purges, len(known(None, ())), *(len(known(pair, ())) for pair in labels))

    def about(self, labels: Labels) -> list[HeldTerm]:
        """Return the terms that may select a pod with these labels, each once."""
        found = list(self._by_pair.get(None, ()))
        for pair in labels:
            found += self._by_pair.get(pair, ())
        return found

    def _file(self, held: HeldTerm) -> None:
        for pair in anchors(held.term.selector):
            self._by_pair.setdefault(pair, []).append(held)

    def _purge(self) -> None:
        self._terms = {key: held for key, held in self._terms.items() if held.rows}
        self._by_pair = {}
        for held in self._terms.values():
            self._file(held)
        self._purges += 1

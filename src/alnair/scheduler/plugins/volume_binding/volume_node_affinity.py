"""Which nodes can reach storage, as row numbers: kept while the nodes stay as they are.

A cluster may have thousands of local volumes, each for one node by its host name, and every pod
with a claim asks for all of them.
"""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import LabelSelector, Term
from alnair.scheduler.framework.node_selectors import term_mask
from alnair.scheduler.framework.selector_validation import is_well_formed
from alnair.scheduler.state.nodes.columns import Columns, Mask

RowNumbers = NDArray[np.intp]


class Reach:
    """Rows by node selector terms, for one state of the nodes."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._rows: dict[tuple[Term, ...], RowNumbers] = {}
        self._by_label: dict[str, dict[int, RowNumbers]] = {}

    def rows(self, terms: tuple[Term, ...]) -> RowNumbers:
        """Return the rows that any of the terms matches; without terms there are none."""
        known = self._rows.get(terms)
        if known is None:
            known = self._rows[terms] = self._find(terms)
        return known

    def mask(self, terms: tuple[Term, ...] | None) -> Mask:
        """Return the same as a mask of all rows; None matches all."""
        if terms is None:
            return np.ones(self._columns.alive.size, bool)
        mask = np.zeros(self._columns.alive.size, bool)
        mask[self.rows(terms)] = True
        return mask

    def selected(self, selector: LabelSelector) -> Mask:
        """Return which rows a label selector matches; one without requirements matches all."""
        return self.mask((Term(selector.requirements),) if selector.requirements else None)

    def _find(self, terms: tuple[Term, ...]) -> RowNumbers:
        if len(terms) == 1 and not terms[0].fields and len(terms[0].labels) == 1:
            only = terms[0].labels[0]
            if only.operator == "In" and len(only.values) == 1:
                value = self._columns.labels.value(only.key, only.values[0])
                return self._labelled(only.key).get(value, np.zeros(0, np.intp))
        mask = np.zeros(self._columns.alive.size, bool)
        for term in filter(is_well_formed, terms):
            mask |= term_mask(term, self._columns, slice(None))
        return np.flatnonzero(mask)

    def _labelled(self, key: str) -> dict[int, RowNumbers]:
        """Return the rows of each value of a label."""
        found = self._by_label.get(key)
        if found is None:
            rows: defaultdict[int, list[int]] = defaultdict(list)
            for row, value in enumerate(self._columns.labels.column(key).tolist()):
                rows[value].append(row)
            found = {value: np.array(numbers, np.intp) for value, numbers in rows.items()}
            self._by_label[key] = found
        return found

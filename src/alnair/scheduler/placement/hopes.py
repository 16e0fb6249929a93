"""Which waiting classes may hope: those for which some node may have enough, as far as is known.

A class that every node refuses has no hope until a node changes so that it has what the class
needs, and only that one is known to: when somebody else takes it, the hope is gone. So a change
costs one comparison for all classes, and only those that hope are looked at closely.
"""

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.placement.class_needs import ClassNeeds
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.queue.unit import WaitingClass
from alnair.scheduler.state.nodes.changed_rows import Renewal
from alnair.scheduler.state.nodes.columns import Column, Rows

#: What a class hopes for: the row that alone may hold it, or one of these.
_NOTHING: Final = -1
_SEVERAL: Final = -2
#: Rows of which each is compared with each class; of more, only the most of each amount.
_FEW: Final = 16


class Hopes:
    """Hopes of waiting classes, followed as nodes and bookings change.

    Args:
        context: what decisions are made from.
    """

    def __init__(self, context: EngineContext) -> None:
        self._profiles = context.profiles
        self._cluster = context.accounts.cluster
        self._renewal = Renewal(self._cluster.columns)
        self._needs = ClassNeeds(self._cluster)
        #: By number: whose it is, and what it hopes for.
        self._classes: list[WaitingClass | None] = []
        self._hope: NDArray[np.intp] = np.zeros(0, np.intp)
        #: What the filters read that took hope: versions by kind of object, and by plugin of what
        #: it observed. If one changes, they must be run again.
        self._kinds: dict[str, int] = {}
        self._observed: dict[str, int] = {}
        #: By number: who lacks something on a row, and which row in which state; see `lacks`.
        self._lacking: list[bool] = []
        self._compared = (-1, -1, -1, -1)
        #: What all nodes have, and the most of each; computed when somebody asks.
        self._there: Column | None = None
        self._most: Column = np.zeros(0)

    def follow(self) -> None:
        """Take in which nodes changed since the last call."""
        if self._compiled_anew():
            self._hope[:] = _SEVERAL
        rows = self._renewal.due()
        if rows is not None:
            self._there = None
            self._compare(rows)

    def of(self, classes: Sequence[WaitingClass]) -> list[WaitingClass]:
        """Return those of these classes, some of which may be new, that hope; see `follow`.

        Where several nodes may have enough, it is not known whether one has: `found` tells.
        """
        known = self._classes
        if came := [w for w in classes if w.number >= len(known) or known[w.number] is not w]:
            self._come(came)
        hope = self._hope[[waiting.number for waiting in classes]] != _NOTHING
        return list(itertools.compress(classes, hope.tolist()))

    def found(self, waiting: WaitingClass) -> bool:
        """Return whether some node has enough for a class that hopes."""
        if self._hope.item(waiting.number) == _SEVERAL:
            self._search(waiting.number)
        return self._hope.item(waiting.number) != _NOTHING

    def only_row(self, waiting: WaitingClass) -> int | None:
        """Return the row that alone may have enough for a class that hopes, if it is just one."""
        hope = self._hope.item(waiting.number) if self._knows(waiting) else _SEVERAL
        return hope if hope >= 0 else None

    def lacks(self, waiting: WaitingClass, row: int) -> bool:
        """Return whether the row is known to have too little for a class at this moment.

        All classes are compared with a row at once: after a booking many of them ask.
        """
        if not self._knows(waiting):
            return False
        columns = self._cluster.columns
        state = row, columns.booked.end, columns.nodes_changed.end, self._needs.count
        if state != self._compared:
            there = self._needs.there(slice(row, row + 1))[:, 0]
            self._lacking = self._needs.beyond(there).tolist()
            self._compared = state
        return waiting.number < len(self._lacking) and self._lacking[waiting.number]

    def refused(self, waiting: WaitingClass, evaluation: Evaluation, *, nowhere: bool) -> None:
        """Note that a pod was tried and now waits with this class, which may be new.

        What the class needs is taken in here, by whoever is tried, and not by those who look at a
        long queue afterwards.

        Args:
            waiting: Where it waits.
            evaluation: Of its class.
            nowhere: Every node alone refuses it.
        """
        if not self._knows(waiting):
            self._put(waiting)
            self._hope[waiting.number] = _SEVERAL
        if nowhere:
            self.lose(waiting, evaluation)

    def lose(self, waiting: WaitingClass, evaluation: Evaluation) -> None:
        """Note that a class was looked at closely, and every node alone refuses it."""
        reads = evaluation.filters_read()
        if reads is None:
            return
        kinds, observed = reads
        for kind in kinds:
            self._kinds.setdefault(kind, self._cluster.objects.version(kind))
        for plugin in observed:
            self._observed.setdefault(plugin, self._cluster.observations.version(plugin))
        self._hope[waiting.number] = _NOTHING

    def _knows(self, waiting: WaitingClass) -> bool:
        known = self._classes
        return waiting.number < len(known) and known[waiting.number] is waiting

    def _compare(self, rows: Rows) -> None:
        """Compare what changed rows have with what classes need that do not hope for several."""
        changed = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        hope = self._hope[: len(self._classes)]
        if not changed.size or not hope.size:
            return
        if changed.size == 1:
            hope[hope == changed[0]] = _NOTHING
        elif (hoping := np.flatnonzero(hope >= 0)).size:
            has_changed = np.zeros(self._cluster.columns.n, bool)
            has_changed[changed] = True
            hope[hoping[has_changed[hope[hoping]]]] = _NOTHING
        there = self._needs.there(rows)
        # Few need no more than the most of each: only those are compared node by node.
        numbers = self._needs.within(slice(0, hope.size), there.max(axis=1))
        numbers = numbers[hope[numbers] != _SEVERAL]
        before = hope[numbers]
        if changed.size == 1:
            found = np.full(numbers.size, changed[0])
        elif changed.size <= _FEW:
            fits = self._needs.fitting(numbers, there)
            count = np.count_nonzero(fits, axis=1)
            found = np.where(count == 1, changed[fits.argmax(axis=1)], _SEVERAL)
            found[count == 0] = _NOTHING
        else:
            found = np.full(numbers.size, _SEVERAL)
        both = np.where(found == _NOTHING, before, _SEVERAL)
        hope[numbers] = np.where(before == _NOTHING, found, both)

    def _come(self, classes: Sequence[WaitingClass]) -> None:
        """Take in classes that were not known: those hope that need no more than there is."""
        for waiting in classes:
            self._put(waiting)
        numbers = np.array([waiting.number for waiting in classes])
        self._hope[numbers] = _NOTHING
        self._look_around()
        self._hope[numbers[self._needs.within(numbers, self._most)]] = _SEVERAL

    def _put(self, waiting: WaitingClass) -> None:
        """Take in what a class needs; what it hopes for is to be set yet."""
        number = waiting.number
        if number >= self._hope.size:
            self._hope = np.pad(self._hope, (0, max(64, number + 1)))
        if number >= len(self._classes):
            self._classes.extend([None] * (number + 1 - len(self._classes)))
        self._classes[number] = waiting
        if number < len(self._lacking):
            self._lacking[number] = False  # what is known is of whom it was before
        if waiting.class_key is None:  # any change may help
            self._needs.clear(number)
        else:
            scheduler, spec = waiting.class_key
            self._needs.put(number, spec, self._profiles[scheduler].quick)

    def _search(self, number: int) -> None:
        """Find out on which nodes there is enough for a class that may hope for several."""
        there = self._look_around()
        found = np.flatnonzero(self._needs.fitting(np.array([number]), there)[0])
        if found.size < 2:
            self._hope[number] = found[0] if found.size else _NOTHING

    def _look_around(self) -> Column:
        """Return what all nodes have, and keep the most of each amount."""
        if self._there is None or len(self._there) != self._needs.count:
            self._there = self._needs.there(slice(0, self._cluster.columns.n))
            self._most = self._there.max(axis=1, initial=-np.inf)
        return self._there

    def _compiled_anew(self) -> bool:
        objects, observations = self._cluster.objects, self._cluster.observations
        if all(objects.version(kind) == seen for kind, seen in self._kinds.items()) and all(
            observations.version(plugin) == seen for plugin, seen in self._observed.items()
        ):
            return False
        self._kinds.clear()
        self._observed.clear()
        return True

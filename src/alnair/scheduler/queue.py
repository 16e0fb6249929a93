"""The queue: what to try now, what backs off, what waits for the cluster to change.

Its unit is the gang; a lone pod is a gang of one. Ties go to the unit that came first.
"""

import enum
import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Final

from alnair.model.workload import PodSpec
from alnair.scheduler.accounts import Record

#: Back-off after a failed attempt: doubles from the first to the last. Source: kube-scheduler's defaults.
FIRST_BACKOFF: Final = 1.0
LAST_BACKOFF: Final = 10.0
#: Classes of waiting units that one change of the cluster makes us look at, at most; the rest come later.
_LOOKS: Final = 64

ClassKey = tuple[str, PodSpec]


class _End(enum.Enum):
    END = enum.auto()


_END: Final = _End.END


class Place(enum.Enum):
    """Where a unit is."""

    NOWHERE = enum.auto()
    ACTIVE = enum.auto()
    BACKOFF = enum.auto()
    PARKED = enum.auto()


class Unit:
    """Pods that are tried together."""

    __slots__ = ("attempts", "class_key", "key", "place", "pods", "sort", "ticket")

    def __init__(self, key: str) -> None:
        self.key = key
        self.pods: dict[str, Record] = {}
        self.sort: tuple[float, ...] = ()
        self.attempts = 0
        self.place = Place.NOWHERE
        #: Invalidates older heap entries of this unit.
        self.ticket = 0
        #: The class whose chances decide when to try again; None = any change may help.
        self.class_key: ClassKey | None = None


class Queue:
    """Units in three places; entries of the heaps go stale when their unit moves."""

    def __init__(self) -> None:
        self._sequence = itertools.count()
        self._active: list[tuple[tuple[float, ...], int, int, Unit]] = []
        self._backoff: list[tuple[float, int, int, Unit]] = []
        self._parked: dict[ClassKey | None, dict[str, Unit]] = {}
        self._round: Iterator[ClassKey | None] = iter(())
        self._unlooked = 0
        self._counts = dict.fromkeys(Place, 0)

    def __len__(self) -> int:
        return sum(self._counts[p] for p in (Place.ACTIVE, Place.BACKOFF, Place.PARKED))

    def count(self, place: Place) -> int:
        """Return the number of units in a place."""
        return self._counts[place]

    def activate(self, unit: Unit) -> None:
        """Try the unit when its turn comes."""
        self._leave(unit)
        self._enter(unit, Place.ACTIVE)
        heapq.heappush(self._active, (unit.sort, next(self._sequence), unit.ticket, unit))

    def back_off(self, unit: Unit, now: float) -> None:
        """Try the unit again after its back-off."""
        self._leave(unit)
        self._enter(unit, Place.BACKOFF)
        delay = min(FIRST_BACKOFF * 2.0 ** max(0, min(unit.attempts, 30) - 1), LAST_BACKOFF)
        entry = (now + delay, next(self._sequence), unit.ticket, unit)
        heapq.heappush(self._backoff, entry)

    def park(self, unit: Unit, class_key: ClassKey | None) -> None:
        """Keep the unit until something changes that may help it."""
        self._leave(unit)
        self._enter(unit, Place.PARKED)
        unit.class_key = class_key
        self._parked.setdefault(class_key, {})[unit.key] = unit

    def drop(self, unit: Unit) -> None:
        """Take the unit out."""
        self._leave(unit)

    def pop(self) -> Unit | None:
        """Take the next unit to try."""
        while self._active:
            _, _, ticket, unit = heapq.heappop(self._active)
            if ticket == unit.ticket and unit.place is Place.ACTIVE:
                self._leave(unit)
                return unit
        return None

    def release(self, now: float) -> None:
        """Activate the units whose back-off is over."""
        while self._backoff and self._backoff[0][0] <= now:
            _, _, ticket, unit = heapq.heappop(self._backoff)
            if ticket == unit.ticket and unit.place is Place.BACKOFF:
                self.activate(unit)

    def next_release(self) -> float | None:
        """Return when the next back-off is over."""
        return self._backoff[0][0] if self._backoff else None

    def changed(self) -> None:
        """Note that the cluster changed in a way that may help parked units."""
        self._unlooked = len(self._parked)

    def wake(self, helps: Callable[[ClassKey], bool]) -> bool:
        """Activate parked units that the last change helps; returns whether classes are left to look at.

        Looks at a bounded number of classes, going round: a long backlog costs little at each change.
        """
        looks = min(_LOOKS, self._unlooked)
        self._unlooked -= looks
        for _ in range(looks):
            class_key = next(self._round, _END)
            if class_key is _END:
                self._round = iter(list(self._parked))
                class_key = next(self._round, _END)
            if class_key is _END:
                break
            units = self._parked.get(class_key)
            if units and (class_key is None or helps(class_key)):
                for unit in list(units.values()):
                    self.activate(unit)
        return self._unlooked > 0

    def _enter(self, unit: Unit, place: Place) -> None:
        unit.place = place
        unit.ticket += 1
        self._counts[place] += 1

    def _leave(self, unit: Unit) -> None:
        if unit.place is Place.PARKED:
            parked = self._parked[unit.class_key]
            del parked[unit.key]
            if not parked:
                del self._parked[unit.class_key]
        if unit.place is not Place.NOWHERE:
            self._counts[unit.place] -= 1
        unit.place = Place.NOWHERE
        unit.ticket += 1

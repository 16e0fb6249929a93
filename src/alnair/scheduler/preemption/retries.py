"""For whom to look for victims again: units for which no room could be made, if things changed."""

from typing import Final

from alnair.scheduler.queue.backoff import backoff
from alnair.scheduler.queue.queue import Queue
from alnair.scheduler.queue.unit import Place, Unit

#: Units that are tried again per step.
_PER_STEP: Final = 8
_SWEEP: Final = 64


class _Refused:
    """Units of one class and priority for which no room could be made."""

    __slots__ = ("due", "seen", "sweep", "tries", "units")

    def __init__(self) -> None:
        self.units: dict[str, Unit] = {}
        self.tries = 0
        self.due = 0.0
        #: How often the cluster had changed when the last one was tried.
        self.seen = 0
        #: When there are more units than this, those that are gone are dropped.
        self.sweep = _SWEEP

    def add(self, unit: Unit) -> None:
        """Note a unit; what was placed or deleted since must not pile up behind one that stays."""
        self.units[unit.key] = unit
        if len(self.units) > self.sweep:
            self.units = {key: unit for key, unit in self.units.items() if unit.pods}
            self.sweep = max(_SWEEP, 2 * len(self.units))


class Retries:
    """Units that were refused room, by what they have in common; one of each is tried at a time.

    Args:
        queue: where they are put to be tried.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._refused: dict[object, _Refused] = {}
        self._changes = 0

    def __len__(self) -> int:
        return sum(len(refused.units) for refused in self._refused.values())

    def changed(self) -> None:
        """Note that the cluster changed in a way that may let room be made."""
        self._changes += 1

    def add(self, group: object, unit: Unit, now: float) -> None:
        """Note that no room could be made for a unit; those of a group have the same chances."""
        refused = self._refused.setdefault(group, _Refused())
        refused.add(unit)
        refused.tries += 1
        refused.due = now + backoff(refused.tries)
        refused.seen = self._changes

    def succeeded(self, unit: Unit) -> None:
        """Note that room is made for a unit: the next one of its group may be as lucky."""
        for refused in self._refused.values():
            if refused.units.pop(unit.key, None):
                refused.tries, refused.due = 0, 0.0

    def follow(self, now: float) -> None:
        """Try some again whose back-off is over, if the cluster changed since."""
        due = [r for r in self._refused.values() if r.due <= now and r.seen != self._changes]
        for refused in sorted(due, key=lambda r: r.due)[:_PER_STEP]:
            refused.seen = self._changes
            for key, unit in list(refused.units.items()):
                if unit.place is Place.PARKED:
                    self._queue.activate(unit)
                    break
                if not unit.pods:
                    del refused.units[key]
        for group in [g for g, r in self._refused.items() if not r.units]:
            del self._refused[group]

    def next(self) -> float | None:
        """Return when `follow` has something to do; None if the cluster must change first."""
        return min((r.due for r in self._refused.values() if r.seen != self._changes), default=None)

"""The queue: what to try now, what backs off, what waits for the cluster to change.

Its unit is the gang; a lone pod is a gang of one. Ties go to the unit that came first.

Lone pods of one class have the same chances, so a change of the cluster costs one look per class
that waits, and only the first pod of a class that may fit is tried; the next one follows when that
one was placed. A backlog of a hundred thousand pods costs no more than its classes.
"""

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from alnair.scheduler.metric_counters import SchedulerCounters
from alnair.scheduler.queue.active_units import Active
from alnair.scheduler.queue.backoff import backoff
from alnair.scheduler.queue.neighbour_wakeups import NeighbourChanges, depends_on_neighbours
from alnair.scheduler.queue.unit import ClassKey, Place, Unit, WaitingClass
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.objects import storage_objects
from alnair.scheduler.state.objects.api_objects import Key, Objects
from alnair.scheduler.state.objects.elastic_quotas import Quotas
from alnair.scheduler.state.objects.namespace_usage import Usage

#: Waiting classes that one step looks at, at most; the rest come in the next steps.
LOOKS: Final = 64
#: So many times as many, as long as nobody among them hopes: that is told of all at once.
HOPELESS: Final = 16


class Queue:
    """Units in three places; entries of the heaps go stale when their unit moves.

    Args:
        counters: where to count who came; None begins anew.
        quotas: by which units of the same priority take turns; None = by age alone.
    """

    def __init__(
        self, counters: SchedulerCounters | None = None, quotas: Quotas | None = None
    ) -> None:
        self._counters = counters if counters is not None else SchedulerCounters()
        self._quotas = quotas if quotas is not None else Quotas(Objects(), Usage())
        self._sequence = itertools.count()
        self._active = Active(self._quotas.turn)
        self._backoff: list[tuple[float, int, int, Unit]] = []
        # Lone pods wait by class, gangs by their key.
        self._parked: dict[ClassKey | str, WaitingClass] = {}
        # In the order in which they are looked at: the first `_unlooked` ones have not been since
        # the last change. Not by key, for the hash of a class takes longer than a look.
        self._round: OrderedDict[WaitingClass, None] = OrderedDict()
        self._unlooked = 0
        #: Numbers below the highest in use that no waiting class has, with who had them last.
        self._former: dict[int, WaitingClass] = {}
        #: Those that look at pods of other nodes too.
        self._neighbour_dependent: dict[WaitingClass, None] = {}
        #: Those with volumes.
        self._stored: dict[WaitingClass, None] = {}
        self._counts = dict.fromkeys(Place, 0)

    def __len__(self) -> int:
        return sum(self._counts[p] for p in (Place.ACTIVE, Place.BACKOFF, Place.PARKED))

    def count(self, place: Place) -> int:
        """Return the number of units in a place."""
        return self._counts[place]

    def activate(self, unit: Unit, event: str = "PodAdd") -> None:
        """Try the unit when its turn comes; `event` says why, for the figures."""
        self._move(unit, Place.ACTIVE)
        self._counters.queued("active", event, len(unit.pods))
        self._active.push(unit, self._quotas.tenant(unit.namespace))

    def back_off(self, unit: Unit, now: float, event: str = "ScheduleAttemptFailure") -> None:
        """Try the unit again after its back-off; `event` says why, for the figures."""
        self._wait_until(unit, now + backoff(unit.attempts), event)

    def park(self, unit: Unit, class_key: ClassKey | None, now: float) -> None:
        """Keep the unit until something changes that may help this class; None = anything."""
        self._move(unit, Place.PARKED)
        self._counters.queued("unschedulable", "ScheduleAttemptFailure", len(unit.pods))
        # A gang is dear to try, so it is not tried at every change.
        unit.not_before = now + backoff(unit.attempts) if unit.gang else 0.0
        key: ClassKey | str = unit.key if unit.gang or class_key is None else class_key
        waiting = self._parked.get(key)
        if waiting is None:
            waiting = self._parked[key] = self._come(unit, key, class_key)
            self._round[waiting] = None
            if any(depends_on_neighbours(record.spec) for record in unit.pods.values()):
                self._neighbour_dependent[waiting] = None
            if any(record.spec.volumes for record in unit.pods.values()):
                self._stored[waiting] = None
        heapq.heappush(waiting.heap, (unit.sort, unit.order, unit.ticket, unit))
        waiting.count += 1
        unit.waiting = waiting

    def hold(self, unit: Unit) -> None:
        """Keep the unit until it is activated: no change of the cluster will help it."""
        self._move(unit, Place.PARKED)
        self._counters.queued("unschedulable", "ScheduleAttemptFailure", len(unit.pods))

    def drop(self, unit: Unit) -> None:
        """Take the unit out."""
        probes_class = unit.probes_class
        self._leave(unit)
        unit.probes_class = None
        if probes_class:
            self.wake_next(probes_class)  # it cannot tell any more whether its class fits

    def pop(self) -> Unit | None:
        """Take the next unit to try; tell `wake_next` when it was placed."""
        unit = self._active.pop()
        if unit is not None:
            self._leave(unit)
            unit.probes_class = None
        return unit

    def tenants_changed(self) -> None:
        """Put the units to be tried under their tenants again: quotas came, changed or went."""
        waiting = []
        while unit := self._active.pop():
            unit.ticket += 1  # so that it is not found twice
            waiting.append(unit)
        for unit in waiting:
            self._active.push(unit, self._quotas.tenant(unit.namespace))

    def turn_changed(self, namespace: str) -> None:
        """Note that the turn of the namespace's tenant may come earlier now."""
        self._active.refresh(self._quotas.tenant(namespace))

    def release(self, now: float) -> None:
        """Activate the units whose back-off is over."""
        while self._backoff and self._backoff[0][0] <= now:
            _, _, ticket, unit = heapq.heappop(self._backoff)
            if ticket == unit.ticket and unit.place is Place.BACKOFF:
                self.activate(unit, "BackoffComplete")

    def next_release(self) -> float | None:
        """Return when the next back-off is over."""
        return self._backoff[0][0] if self._backoff else None

    def changed(self) -> None:
        """Note that the cluster changed in a way that may help parked units."""
        self._unlooked = len(self._parked)

    def object_changed(self, kind: str, key: Key) -> bool:
        """Note that an API object changed; returns whether any parked unit may be helped.

        Storage changes all the time where it is used, and concerns only those who use it.
        """
        if kind not in storage_objects.KINDS:
            self.changed()
            return True
        helped = []
        for waiting in self._stored:
            class_key = waiting.class_key
            if class_key is None or storage_objects.concerns(class_key[1], kind, key):
                helped.append(waiting)
        return self._look_at(helped)

    def neighbours_changed(self, changes: NeighbourChanges) -> bool:
        """Take what happened on other nodes; returns whether any parked unit may be helped."""
        helped = []
        for waiting in self._neighbour_dependent if changes else ():
            class_key = waiting.class_key
            if class_key is None or changes.may_help(class_key[1]):
                helped.append(waiting)
        changes.clear()
        return self._look_at(helped)

    def _look_at(self, helped: Sequence[WaitingClass]) -> bool:
        """Let these be the next that are looked at; returns whether there are any."""
        for waiting in helped:
            self._round.move_to_end(waiting, last=False)
        self._unlooked = min(self._unlooked + len(helped), len(self._parked))
        return bool(helped)

    def wake(
        self,
        now: float,
        helps: Callable[[ClassKey, Unit], bool],
        hopeful: Callable[[Sequence[WaitingClass]], Sequence[WaitingClass]] | None = None,
    ) -> bool:
        """Activate what the last change helps; returns whether some are left to look at.

        Looks at a bounded number, going round: a long backlog costs little at each change.

        Args:
            now: seconds since the epoch.
            helps: whether to try a unit of this class.
            hopeful: of those looked at, in their order, which to ask `helps` about; None for all.
        """
        for waiting in self._next_batch(hopeful):
            unit = _first(waiting)
            if waiting.class_key is not None and not helps(waiting.class_key, unit):
                continue
            if unit.not_before > now:
                self._wait_until(unit, unit.not_before, "ClusterChange")
            else:
                self._probe(unit, waiting.class_key)
        return self._unlooked > 0

    def _next_batch(
        self, hopeful: Callable[[Sequence[WaitingClass]], Sequence[WaitingClass]] | None
    ) -> Sequence[WaitingClass]:
        """Return whom to look at closely, of so many as one step looks at.

        Where nobody hopes, and nobody is to be tried before, the next ones are taken at once.
        """
        for _ in range(1 if hopeful is None or self._counts[Place.ACTIVE] else HOPELESS):
            looks = min(LOOKS, self._unlooked, len(self._parked))
            self._unlooked = min(self._unlooked, len(self._parked)) - looks
            batch: Sequence[WaitingClass] = list(itertools.islice(self._round, looks))
            for waiting in batch:
                self._round.move_to_end(waiting)
            if hopeful is not None:
                batch = hopeful(batch)
            if batch or not self._unlooked:
                break
        return batch

    def wake_next(self, class_key: ClassKey) -> None:
        """Activate the next parked lone pod of a class, one of which was placed or went away."""
        if waiting := self._parked.get(class_key):
            self._probe(_first(waiting), class_key)

    def waiting_classes(self) -> list[ClassKey]:
        """Return the classes of parked lone pods."""
        return [waiting.key for waiting in self._round if isinstance(waiting.key, tuple)]

    def waiting(self, class_key: ClassKey) -> Iterator[Record]:
        """Yield the parked lone pods of a class."""
        if waiting := self._parked.get(class_key):
            for _, _, ticket, unit in waiting.heap:
                if ticket == unit.ticket and unit.waiting is waiting:
                    yield from unit.pods.values()

    def _come(self, unit: Unit, key: ClassKey | str, class_key: ClassKey | None) -> WaitingClass:
        """Return what nobody waits as now: as what the unit did, if its number is still free.

        Then those who keep what they know by number know it still.
        """
        former = unit.waited
        if former is not None and former.key == key and self._former.get(former.number) is former:
            del self._former[former.number]
            former.heap.clear()
            return former
        number = self._former.popitem()[0] if self._former else len(self._parked)
        return WaitingClass(key, class_key, number)

    def _probe(self, unit: Unit, class_key: ClassKey | None) -> None:
        self.activate(unit, "ClusterChange")
        unit.probes_class = None if unit.gang else class_key

    def _wait_until(self, unit: Unit, when: float, event: str) -> None:
        self._move(unit, Place.BACKOFF)
        unit.not_before = when
        self._counters.queued("backoff", event, len(unit.pods))
        heapq.heappush(self._backoff, (when, unit.order, unit.ticket, unit))

    def _move(self, unit: Unit, place: Place) -> None:
        self.drop(unit)
        if unit.order < 0:
            unit.order = next(self._sequence)
        unit.place = place
        unit.ticket += 1
        self._counts[place] += 1

    def _leave(self, unit: Unit) -> None:
        if waiting := unit.waiting:
            waiting.count -= 1
            if not waiting.count:
                del self._parked[waiting.key]
                del self._round[waiting]
                self._former[waiting.number] = waiting
                self._neighbour_dependent.pop(waiting, None)
                self._stored.pop(waiting, None)
            unit.waiting = None
            unit.waited = waiting
        if unit.place is not Place.NOT_QUEUED:
            self._counts[unit.place] -= 1
        unit.place = Place.NOT_QUEUED
        unit.ticket += 1


def _first(waiting: WaitingClass) -> Unit:
    while True:
        _, _, ticket, unit = waiting.heap[0]
        if ticket == unit.ticket and unit.waiting is waiting:
            return unit
        heapq.heappop(waiting.heap)

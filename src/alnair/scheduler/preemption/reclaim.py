"""Who goes by quota: namespaces take back what others have borrowed of their `min`.

Two rules, so that nobody takes from one another in turns:

- **By quota**, whatever the priorities: a pod within the `min` of its namespace takes pods of
  namespaces that borrow what it lacks, as long as these keep their own `min` of it, and of all that
  is more precious. GPUs (and other devices) come before memory, memory before cores: whoever takes
  back GPUs may leave others short of cores, never the reverse. So with every pod that goes this way
  what namespaces lack of their `min` shrinks, compared resource by resource in that order.
- **By priority**, a pod whose namespace borrows (or has no quota) does not make another namespace
  fall short of what it borrows itself: that one would just take it back.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from alnair.model.workload import Pod
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.objects.elastic_quotas import Quotas

_LESSER: Final[Mapping[str, int]] = {"memory": 2, "cpu": 1, "ephemeral-storage": 0, "pods": 0}
_DEVICE: Final = 3
_Taken = dict[str, Counter[str]]
Requests = tuple[tuple[str, int], ...]


class Reclaim:
    """What a unit of one namespace may take of others.

    Args:
        quotas: all quotas, brought up to date.
        asking: the pods that must be placed together and are not.
        leaving: pods that hold something and go anyway.
    """

    def __init__(self, quotas: Quotas, asking: Iterable[Pod], leaving: Iterable[Record]) -> None:
        self._quotas = quotas
        asked: Counter[str] = Counter()
        self.namespace = ""
        for pod in asking:
            self.namespace = pod.namespace
            asked.update(dict(pod.spec.requests))
        mine = quotas.of(self.namespace)
        least = mine.min if mine else {}
        together = Counter(quotas.used(self.namespace))
        together.update(asked)
        #: What the namespace borrows with these pods.
        self._borrowed = {r for r, amount in together.items() if amount > least.get(r, 0)}
        wanted = {r for r, amount in asked.items() if amount and r in least}
        #: What they may take back; nothing if they are beyond `min` in anything that it names.
        self._wanted = wanted if not wanted & self._borrowed else set[str]()
        self._top = max(map(_rank, self._wanted), default=_DEVICE)
        self._leaving: _Taken = {}
        self._precious: dict[Requests, tuple[str, ...]] = {}
        self._gone: dict[str, bool] = {}
        for record in leaving:
            self._gone[record.pod.uid] = True
            _add(self._leaving, record)

    @property
    def possible(self) -> bool:
        """Whether anybody may go by quota."""
        return bool(self._wanted)

    def choice(self) -> "Choice":
        """Return an empty choice of further victims."""
        taken = {namespace: Counter(amounts) for namespace, amounts in self._leaving.items()}
        return Choice(self, taken, dict(self._gone))

    def may_take(self, record: Record, taken: _Taken) -> bool:
        """Return whether a pod may go by quota beside what is taken."""
        theirs = self._quotas.of(record.pod.namespace)
        held = dict(record.pod.spec.requests)
        wanted = [r for r in self._wanted if held.get(r, 0)]
        if theirs is None or not wanted or record.pod.namespace == self.namespace:
            return False
        left = self._left(record.pod.namespace, taken)
        return all(
            left.get(r, 0) - amount >= theirs.min.get(r, 0)
            for r, amount in held.items()
            if amount and (r in wanted or _rank(r) >= self._top)
        )

    def may_outrank(self, records: Iterable[Record], taken: _Taken) -> bool:
        """Return whether pods of another namespace may go together because of their priority."""
        held: Counter[str] = Counter()
        namespace = self.namespace
        for record in records:
            namespace = record.pod.namespace
            held.update(dict(record.pod.spec.requests))
        theirs = self._quotas.of(namespace)
        if theirs is None or namespace == self.namespace:
            return True
        left = self._left(namespace, taken)
        return not any(
            amount and left.get(r, 0) - amount < theirs.min.get(r, 0)
            for r, amount in held.items()
            if r in self._borrowed and r in theirs.min
        )

    def short_after(self, records: Iterable[Record]) -> set[str]:
        """Return the uids of pods that are their namespace's own, if they go in this order."""
        own: set[str] = set()
        left: dict[tuple[str, str], int] = {}
        for record in records:
            namespace, requests = record.pod.namespace, record.pod.spec.requests
            theirs = self._quotas.of(namespace)
            precious = self.precious(requests) if theirs else ()
            for resource, amount in requests if theirs else ():
                if resource in precious:
                    key = (namespace, resource)
                    had = left[key] if key in left else self._has(namespace, resource)
                    left[key] = had - amount
                    if theirs and left[key] < theirs.min.get(resource, 0):
                        own.add(record.pod.uid)
        return own

    def owned(self, victims: Iterable[Record]) -> dict[str, float]:
        """Return which part of each victim is its namespace's own, by uid, where any is.

        Own is what the namespace has less than its `min` without them.
        """
        together: dict[tuple[str, tuple[str, ...]], list[Record]] = {}
        for victim in victims:
            if self._quotas.of(victim.pod.namespace) is not None:
                key = (victim.pod.namespace, self.precious(victim.pod.spec.requests))
                together.setdefault(key, []).append(victim)
        found: dict[str, float] = {}
        for (namespace, precious), records in together.items():
            part = self._part_short(namespace, precious, records)
            if part:
                found.update((r.pod.uid, part) for r in records)
        return found

    def is_all_own(self, namespace: str, precious: Iterable[str]) -> bool:
        """Return whether all that a namespace holds of this is its own."""
        theirs = self._quotas.of(namespace)
        if theirs is None:
            return False
        return any(self._has(namespace, r) <= theirs.min.get(r, 0) for r in precious)

    def precious(self, requests: Requests) -> tuple[str, ...]:
        """Return by which of a pod's resources it is told what is borrowed: the most precious."""
        found = self._precious.get(requests)
        if found is None:
            known = [r for r, amount in requests if amount and r in self._quotas.guaranteed]
            top = max(map(_rank, known), default=0)
            found = tuple(r for r in known if _rank(r) == top)
            self._precious[requests] = found
        return found

    def _part_short(
        self, namespace: str, precious: Iterable[str], records: Iterable[Record]
    ) -> float:
        least = self._quotas.of(namespace)
        assert least is not None  # asked only for namespaces with a quota
        taken: _Taken = {}
        for record in records:
            _add(taken, record)
        part = 0.0
        for resource in precious:
            amount = taken[namespace][resource]
            spare = max(0, self._has(namespace, resource) - least.min.get(resource, 0))
            part = max(part, (amount - spare) / amount)
        return part

    def _has(self, namespace: str, resource: str) -> int:
        """Return what a namespace has of a resource beside what leaves anyway."""
        leaving = self._leaving.get(namespace)
        return self._quotas.used(namespace).get(resource, 0) - (leaving[resource] if leaving else 0)

    def _left(self, namespace: str, taken: _Taken) -> Counter[str]:
        left = Counter(self._quotas.used(namespace))
        left.subtract(taken.get(namespace, {}))
        return left


class Choice:
    """Victims that are considered together; each is asked for once and counts from then on."""

    def __init__(self, reclaim: Reclaim, taken: _Taken, known: dict[str, bool]) -> None:
        self._reclaim = reclaim
        self._taken = taken
        self._known = known

    def by_quota(self, record: Record) -> bool:
        """Return whether a pod may go by quota beside those before it."""
        known = self._known.get(record.pod.uid)
        if known is None:
            known = self._note([record], self._reclaim.may_take(record, self._taken))
        return known

    def by_priority(self, record: Record, gang: Iterable[Record] = ()) -> bool:
        """Return whether a pod of lower priority may go, and with it those of its gang."""
        known = self._known.get(record.pod.uid)
        if known is None:
            whole = {r.pod.uid: r for r in (record, *gang) if r.pod.uid not in self._known}
            found = list(whole.values())
            known = self._note(found, self._reclaim.may_outrank(found, self._taken))
        return known

    def _note(self, records: Iterable[Record], verdict: bool) -> bool:
        for record in records:
            self._known[record.pod.uid] = verdict
            if verdict:
                _add(self._taken, record)
        return verdict


def _add(taken: _Taken, record: Record) -> None:
    taken.setdefault(record.pod.namespace, Counter()).update(dict(record.pod.spec.requests))


def _rank(resource: str) -> int:
    return _LESSER.get(resource, _DEVICE)

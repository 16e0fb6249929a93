"""Gangs over time: how long each has been partly bound, and what evictions leave of it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from alnair.checker import registry
from alnair.checker.objects.groups import CheckedGang, group_of
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.violation import Violation

#: API group and version, namespace, name.
_Key = tuple[str, str, str]
#: Seconds within which the rest of a gang follows the member that is evicted.
FOLLOWS: Final = 30.0
#: Seconds in which the scheduler may not know yet that a gang lost a member in another way.
_UNCLEAR: Final = 5.0


class _Cut(msgspec.Struct):
    """An eviction of ours that left too few of a gang, and who was left then."""

    moment: float
    key: _Key
    left: set[str]


class GangWatch:
    """All PodGroups and the pods that belong to them.

    Args:
        grace: Seconds that a gang may be partly bound: it is many bindings, one after the other.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._groups: dict[_Key, CheckedGang] = {}
        self._of_name: dict[tuple[str, str], set[_Key]] = {}
        self._members: dict[tuple[str, str], dict[str, CheckedPod]] = {}
        #: Gangs that had all their pods, and still have some: what they lose later, they lose.
        self._complete: set[_Key] = set()
        self._partial: dict[_Key, float] = {}
        self._cuts: list[_Cut] = []
        #: By namespace and name: when a gang last lost a member that was not preempted.
        self._lost: dict[tuple[str, str], float] = {}

    def take(
        self,
        api: str,
        listed: Iterable[Mapping[str, Any]] | None,
        changes: Iterable[tuple[str, Mapping[str, Any]]],
        now: float,
    ) -> None:
        """Take a list of all PodGroups of one API, or changes."""
        if listed is not None:
            groups = [group_of(manifest) for manifest in listed]
            there = {(api, *group.key) for group in groups}
            for key in [key for key in self._groups if key[0] == api and key not in there]:
                self._drop(key)
            for group in groups:
                self._add(api, group, now)
        for kind, manifest in changes:
            group = group_of(manifest)
            if kind == "DELETED":
                self._drop((api, *group.key))
            else:
                self._add(api, group, now)

    def _add(self, api: str, group: CheckedGang, now: float) -> None:
        key = (api, *group.key)
        self._groups[key] = group
        self._of_name.setdefault(group.key, set()).add(key)
        self._judge(key, now)

    def _drop(self, key: _Key) -> None:
        self._groups.pop(key, None)
        self._of_name.get(key[1:], set()).discard(key)
        self._partial.pop(key, None)
        self._complete.discard(key)

    def member(self, uid: str, pod: CheckedPod, now: float, *, gone: bool = False) -> None:
        """Note a pod's new state."""
        if not pod.group:
            return
        name = (pod.namespace, pod.group)
        members = self._members.setdefault(name, {})
        before = members.get(uid)
        if before and before.node and not pod.preempted and (gone or pod.deleting):
            self._lost[name] = now
        if gone:
            members.pop(uid, None)
        else:
            members[uid] = pod
        for key in self._of_name.get(name, ()):
            if not gone and pod.preempted and before and not before.preempted:
                self._note_cut(key, now)
            self._judge(key, now)

    def _note_cut(self, key: _Key, now: float) -> None:
        """Note an eviction of ours from a gang that runs, if it leaves too few."""
        left = self._staying(key)
        unclear = now - self._lost.get(key[1:], -_UNCLEAR) < _UNCLEAR
        if key in self._complete and left and len(left) < self._groups[key].least and not unclear:
            self._cuts.append(_Cut(now, key, left))

    def _staying(self, key: _Key) -> set[str]:
        members = self._members.get(key[1:], {})
        return {u for u, p in members.items() if p.node and not (p.deleting or p.preempted)}

    def _judge(self, key: _Key, now: float) -> None:
        group = self._groups[key]
        members = list(self._members.get(group.key, {}).values())
        bound = sum(bool(pod.node) for pod in members)
        if bound >= group.least:
            self._complete.add(key)
        elif not bound:
            self._complete.discard(key)
        if key not in self._complete and registry.of_gang(group, members):
            self._partial.setdefault(key, now)
        else:
            self._partial.pop(key, None)

    def overdue(self, now: float) -> Iterator[tuple[str, Violation]]:
        """Yield what has been partial for too long, or was cut and is, with its namespace."""
        due = [cut for cut in self._cuts if now - cut.moment > FOLLOWS]
        self._cuts = [cut for cut in self._cuts if now - cut.moment <= FOLLOWS]
        for cut in due:
            cut_group = self._groups.get(cut.key)
            left = self._staying(cut.key)
            if cut_group and left & cut.left and len(left) < cut_group.least:
                title, least = cut_group.title, cut_group.least
                yield (
                    cut_group.namespace,
                    Violation("gang-minimum", title, used=len(left), limit=least),
                )
        for key, since in self._partial.items():
            if now - since > self._grace:
                group = self._groups[key]
                members = list(self._members.get(group.key, {}).values())
                for violation in registry.of_gang(group, members):
                    yield group.namespace, violation

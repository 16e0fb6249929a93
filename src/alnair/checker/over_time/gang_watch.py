"""Gangs over time: how long each has been partly bound."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from alnair.checker import registry
from alnair.checker.objects.groups import CheckedGang, group_of
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.violation import Violation

#: API group and version, namespace, name.
_Key = tuple[str, str, str]


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
        if gone:
            members.pop(uid, None)
        else:
            members[uid] = pod
        for key in self._of_name.get(name, ()):
            self._judge(key, now)

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
        """Yield what has been partial for too long, with its namespace."""
        for key, since in self._partial.items():
            if now - since > self._grace:
                group = self._groups[key]
                members = list(self._members.get(group.key, {}).values())
                for violation in registry.of_gang(group, members):
                    yield group.namespace, violation

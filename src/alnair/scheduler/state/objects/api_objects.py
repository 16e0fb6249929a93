"""API objects that plugins read beside nodes and pods: namespaces, claims, budgets, and so on."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

#: (namespace, name); the namespace is "" for cluster-wide kinds.
Key = tuple[str, str]
#: A kind and the key of an object, or None for any object of the kind.
Read = tuple[str, Key | None]


class Objects:
    """Values by kind and key; each kind has a version, which changes with any of its objects."""

    def __init__(self) -> None:
        self._by_kind: defaultdict[str, dict[Key, Any]] = defaultdict(dict)
        self._versions: defaultdict[str, int] = defaultdict(int)
        #: A number that changes whenever any object does.
        self.changes = 0
        self._followers: dict[str, Callable[[Key], bool]] = {}

    def follow(self, kind: str, changed: Callable[[Key], bool]) -> None:
        """Call back with the key of each object of a kind that changed: for whoever keeps rows.

        It returns whether the change may help a pod that fits nowhere.
        """
        self._followers[kind] = changed

    def of(self, kind: str) -> Mapping[Key, Any]:
        """Return the objects of a kind."""
        return self._by_kind[kind]

    def kinds(self) -> list[str]:
        """Return the kinds that have objects, in their order."""
        return sorted(kind for kind, objects in self._by_kind.items() if objects)

    def version(self, kind: str) -> int:
        """Return a number that changes whenever an object of the kind does."""
        return self._versions[kind]

    def state(self, read: Read) -> Any:
        """Return what changes whenever the object, or any of the kind, does."""
        kind, key = read
        return self._versions[kind] if key is None else self._by_kind[kind].get(key)

    def put(self, kind: str, key: Key, value: Any) -> bool:
        """Add or replace an object; returns whether that may help a pod that fits nowhere."""
        objects = self._by_kind[kind]
        if key in objects and objects[key] == value:
            return False
        objects[key] = value
        return self._note(kind, key)

    def touch(self, kind: str) -> None:
        """Note that something of a kind changed that is kept elsewhere."""
        self._versions[kind] += 1
        self.changes += 1

    def remove(self, kind: str, key: Key) -> bool:
        """Forget an object; returns whether that may help a pod that fits nowhere."""
        if self._by_kind[kind].pop(key, None) is None:
            return False
        return self._note(kind, key)

    def _note(self, kind: str, key: Key) -> bool:
        self._versions[kind] += 1
        self.changes += 1
        follower = self._followers.get(kind)
        return follower is None or follower(key)

"""The numbers behind priority classes, for jobs of which admission has not seen a pod yet."""

from collections.abc import Callable

import msgspec

from alnair.kube.client import Client
from alnair.kube.informer import Change, Informer
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.resources import PRIORITY_CLASSES


class _ClassWire(msgspec.Struct, rename="camel"):
    metadata: ObjectMeta
    value: int = 0
    global_default: bool = False


class _Class(msgspec.Struct, frozen=True):
    value: int
    is_default: bool


class Priorities:
    """Follows priority classes.

    Args:
        client: An open client.
        changed: Told that one of them did.
    """

    def __init__(self, client: Client, changed: Callable[[], None]) -> None:
        def one_changed(_: Change[_Class]) -> None:
            changed()

        self._classes = Informer(
            client,
            PRIORITY_CLASSES.typed(_ClassWire),
            lambda wire: _Class(wire.value, wire.global_default),
            one_changed,
        )

    async def run(self) -> None:
        """Follow until cancelled."""
        await self._classes.run()

    async def synced(self) -> None:
        """Wait a little for what there was at the start."""
        await self._classes.known_soon()

    def of(self, name: str) -> int:
        """Return the priority of a class; of the default one for an empty name; 0 if unknown."""
        if name:
            found = self._classes.items.get(("", name))
            return found.value if found else 0
        defaults = (one.value for one in self._classes.items.values() if one.is_default)
        return max(defaults, default=0)

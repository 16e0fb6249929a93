"""Namespaces that are being deleted: their training jobs go at once.

A namespace's pods are deleted first, and must be gone before all else is. Pods of an Indexed Job
with a limit per index stay until the Job has made others in their place, which nobody can any more:
so the Job must go before them.
"""

from collections.abc import Callable

import msgspec

from alnair.kube.client import Client
from alnair.kube.informer import Change, Informer
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.resources import NAMESPACES


class _NamespaceWire(msgspec.Struct):
    metadata: ObjectMeta


class _Namespace(msgspec.Struct, frozen=True):
    is_ending: bool


class EndingNamespaces:
    """Follows namespaces.

    Args:
        client: An open client.
        ends: Told the name of one that is being deleted.
    """

    def __init__(self, client: Client, ends: Callable[[str], None]) -> None:
        def changed(change: Change[_Namespace]) -> None:
            if change.new is not None and change.new.is_ending:
                ends(change.key[1])

        self._namespaces = Informer(
            client,
            NAMESPACES.typed(_NamespaceWire),
            lambda wire: _Namespace(wire.metadata.deletion_timestamp is not None),
            changed,
        )

    async def run(self) -> None:
        """Follow until cancelled."""
        await self._namespaces.run()

    def __contains__(self, name: str) -> bool:
        found = self._namespaces.items.get(("", name))
        return found is not None and found.is_ending

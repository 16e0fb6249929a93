"""PodGroups of all dialects as one stream of gangs."""

import asyncio
import logging
from collections.abc import Callable, Iterator

from alnair.kube.client import Client
from alnair.kube.informer import Change, ChangeKind, Informer, Key
from alnair.kube.pod_groups import dialects
from alnair.kube.pod_groups.dialects import Dialect
from alnair.model.workload import Gang
from alnair.scheduler.engine import events

_log = logging.getLogger(__name__)


class GangFeed:
    """Follows every kind of PodGroup that there is.

    Args:
        client: An open client.
        tell: Called with each change.
    """

    def __init__(
        self, client: Client, tell: Callable[[events.GangChanged | events.GangGone], None]
    ) -> None:
        self._client = client
        self._tell = tell
        self._followed = [(dialect, self._informer(dialect)) for dialect in dialects.CUSTOM]
        self._discovered = asyncio.Event()

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _, informer in self._followed:
                group.create_task(informer.run())
            native = await dialects.native(self._client, self._discovered.set)
            informer = self._informer(native)
            self._followed.append((native, informer))
            self._discovered.set()
            group.create_task(informer.run())

    async def synced(self) -> None:
        """Wait until all that existed at the start is known."""
        await self._discovered.wait()
        for dialect, informer in self._followed:
            if not await informer.known_soon():
                # Its CRD may not be installed; when it is, its gangs come as news.
                _log.warning(
                    "no %s can be read: gangs of that kind are unknown",
                    dialect.resource.collection(),
                )

    def everything(self) -> Iterator[Gang]:
        """Return the gangs that are known now."""
        for key in {key for _, informer in self._followed for key in informer.items}:
            if (gang := self._strictest(key)) is not None:
                yield gang

    def _informer(self, dialect: Dialect) -> Informer[object, Gang]:
        return Informer(self._client, dialect.resource, dialect.project, self._changed)

    def _changed(self, change: Change[Gang]) -> None:
        if change.kind is ChangeKind.SYNCED:
            return
        gang = self._strictest(change.key)
        self._tell(events.GangGone(*change.key) if gang is None else events.GangChanged(gang))

    def _strictest(self, key: Key) -> Gang | None:
        """Return the PodGroup that rules pods of this name: several kinds may have one.

        The one that wants most pods: then the promises of the others are kept too.
        """
        found = [i.items[key] for _, i in self._followed if key in i.items]
        return max(found, key=lambda gang: gang.min_member, default=None)

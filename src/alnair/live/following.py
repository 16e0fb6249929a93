"""A cluster followed by an engine that never decides: for those who ask, again and again."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

import msgspec

from alnair.kube.client import Client
from alnair.kube.informer import Change, Informer
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.resources import LEASES
from alnair.live.engine_feed import Feed
from alnair.live.scheduler_lease import read_holdings
from alnair.model import names
from alnair.model.api_types import Holdings
from alnair.model.workload import Pod
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.engine.events import Event
from alnair.scheduler.engine.view import View
from alnair.scheduler.framework.extension_points import Profile

T = TypeVar("T")

#: Changes that are kept while nobody asks; with more, the engine is made anew when somebody does.
_KEPT: Final = 100_000


class ClusterFollower:
    """Keeps an engine as the cluster is, with what the scheduler that leads holds for others.

    Args:
        client: An open client.
        profiles: Makes those of the scheduler, for one engine each.
        kinds: What is followed beside nodes, pods, gangs and storage; None: all that the profiles
            read.
    """

    def __init__(
        self,
        client: Client,
        profiles: Callable[[], Sequence[Profile]],
        kinds: Collection[str] | None = None,
    ) -> None:
        self._profiles = profiles
        if kinds is None:
            kinds = {kind for profile in profiles() for kind in profile.kinds()}
        self._feed = Feed(client, kinds)
        self._engine: Engine | None = None
        self._asking = asyncio.Lock()
        self._leases = Informer(
            client,
            LEASES.typed(_LeaseWire),
            lambda lease: _Held(read_holdings(lease.metadata.annotations or {})),
            self._held,
            namespace=names.NAMESPACE,
            field_selector=f"metadata.name={names.SCHEDULER}",
        )
        #: Set when something changed since somebody asked.
        self.news = self._feed.wake

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._feed.run())
            group.create_task(self._leases.run())

    async def synced(self) -> None:
        """Wait until all that existed at the start is known."""
        await self._feed.synced()
        await self._leases.known_soon()

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return the pod of this name as it is now; None if there is none."""
        return self._feed.named(namespace, name)

    async def ask(
        self, question: Callable[[View, Holdings], T], supposed: Sequence[Event] = ()
    ) -> T:
        """Return the answer to a question about what is known now.

        It is answered in a thread, so that a long one holds nobody up; the view is good until the
        answer. Without a scheduler's Lease that can be read, nothing but what pods say themselves
        is held.

        Args:
            question: Asked in a thread.
            supposed: Taken to have happened, now and later: for one who asks once.
        """
        async with self._asking:
            self.news.clear()
            leases = self._leases.items.values()
            held = next((one.held for one in leases if one.held is not None), Holdings(1))
            feed = self._feed
            if self._engine is None or len(feed.inbox) > _KEPT:
                self._engine = Engine(self._profiles())
                feed.inbox.clear()
                feed.inbox.extend(feed.everything())
                feed.listening = True
            engine, batch = self._engine, [*feed.inbox, *supposed]
            feed.inbox.clear()

            def answer() -> T:
                engine.follow(batch, time.time(), held)
                return question(engine.view, held)

            try:
                return await asyncio.to_thread(answer)
            except BaseException:
                # It may have taken in a part only.
                self._engine = None
                raise

    def _held(self, change: Change["_Held"]) -> None:
        if change.new != change.old:  # most changes are renewals
            self.news.set()


class _LeaseWire(msgspec.Struct):
    metadata: ObjectMeta


class _Held(msgspec.Struct, frozen=True):
    """What the scheduler that leads holds for others; None if it does not say."""

    held: Holdings | None

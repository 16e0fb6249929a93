"""A local copy of a collection, kept true by list and watch.

The copy holds projected values, not objects: each object is decoded, projected and dropped, so that
50,000 pods cost what their values cost. What the API server or the network does wrong is survived
here and shows only as later changes; see `Informer.run` for what is done about each fault.

A process with a large cache should call `gc.freeze()` once after `synced`: the cyclic collector
would walk the whole cache again and again without finding anything.
"""

import asyncio
import enum
import logging
import random
import sys
from collections.abc import Callable, Hashable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Final, Generic, TypeVar

import msgspec

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.codec import Lines, Page, Undecodable, WatchEvent, key_of
from alnair.kube.errors import (
    ApiError,
    ConnectionFailed,
    Gone,
    KubeError,
    NotFound,
    ProtocolError,
    WatchTimeout,
)
from alnair.kube.resources import Resource

T = TypeVar("T")
V = TypeVar("V")

#: (namespace, name); the namespace is "" for cluster-wide kinds.
Key = tuple[str, str]

#: Seconds of one watch, before jitter of up to as much again; client-go's values.
WATCH_SECONDS = 300
#: A stream that ends sooner than this without an event counts as a failure, or a broken proxy
#: would be asked without pause.
SHORT_WATCH = 1.0

#: Seconds to wait for kinds that a cluster may not have.
OPTIONAL_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class ChangeKind(enum.Enum):
    """What happened to a value."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    #: No change: all that existed when we began has been delivered. Comes once.
    SYNCED = "SYNCED"


class Change(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """One change of the local copy; `old` is None for ADDED, `new` for DELETED, both for SYNCED."""

    kind: ChangeKind
    key: Key
    old: V | None
    new: V | None


class Informer(Generic[T, V]):
    """The values of one collection, by key.

    Args:
        client: An open client.
        resource: What to follow, with the narrow type that holds all that `project` reads.
        project: From an object to the value to keep. It must not raise.
        on_change: Called for each change, in order, from the loop's thread; must be quick. An
            exception of it ends `run`, because the receiver would be wrong from then on.
        namespace: One namespace, None for all.
        label_selector: Only objects that match; one that stops to match is DELETED.
        field_selector: Likewise.
        key: From an object to its key.
        identity: From a value to what makes it the same object over time, its uid. With it, an
            object that was deleted and made anew while we were cut off is DELETED and ADDED
            instead of MODIFIED.
        page_size: Objects asked for at once while listing.
        idle_timeout: Seconds without a byte (bookmarks come each minute) after which a watch is
            taken for dead.
        backoff: Waits after failures.
        jitter: Numbers in [0, 1), to spread the ends of watches.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        project: Callable[[T], V],
        on_change: Callable[[Change[V]], None],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        key: Callable[[T], Key] = key_of,
        identity: Callable[[V], Hashable] | None = None,
        page_size: int = 500,
        idle_timeout: float = 90.0,
        backoff: Backoff | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._resource = resource
        self._project = project
        self._on_change = on_change
        self._namespace = namespace
        self._labels = label_selector
        self._fields = field_selector
        self._key = key
        self._identity = identity
        self._page_size = page_size
        self._idle_timeout = idle_timeout
        self._backoff = backoff or Backoff(jitter=jitter)
        self._jitter = jitter
        self._values: dict[Key, V] = {}
        #: Where to resume; "" asks for a new list.
        self._version = ""
        self._garbled_at = ""
        self._pages_expired = False
        #: Set once the first list is complete.
        self.synced = asyncio.Event()
        #: Set once it is known what there was at the start: then, or when the kind is not served.
        self.known = asyncio.Event()
        #: How often the whole collection was listed, and a watch was opened.
        self.lists = 0
        self.watches = 0

    @property
    def items(self) -> Mapping[Key, V]:
        """The values by key, a live view."""
        return MappingProxyType(self._values)

    async def known_soon(self) -> bool:
        """Wait a little for what there was at the start; returns whether it is known now.

        For a kind that a cluster may not have: its objects come as news if it is installed later.
        """
        try:
            async with asyncio.timeout(OPTIONAL_SECONDS):
                await self.known.wait()
        except TimeoutError:
            return False
        return True

    async def run(self) -> None:
        """Follow the collection until cancelled.

        - The stream ends, breaks or ends in half a line: resume from the last resourceVersion, with
          growing waits while that fails.
        - It falls silent: resume at once, and do not warn. An API server sends no bookmarks of a
          kind that has not changed since its start, so this is how watches of quiet kinds end.
        - 410 Gone: list again and deliver the difference.
        - 429 or 503: wait as long as Retry-After says.
        - A line that is no event: resume; at the second time in one place, list again.
        - An object that does not fit our type: it counts as absent, and is logged.
        - 401, 403, 404: logged and tried again, since roles and CRDs are often created later. A
          kind that is not served (404) is no fault: that is said once, and not as a warning.
        """
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._follow()
            except Gone as error:
                _log.info("%s: list again: %s", self._resource.plural, error)
                self._version = ""
                await self._wait(error)
            except ProtocolError as error:
                if self._garbled_at == self._version:
                    self._version = ""
                self._garbled_at = self._version
                await self._wait(error)
            except WatchTimeout as error:
                _log.debug("%s: watch again: %s", self._resource.plural, error)
            except NotFound as error:
                level = logging.DEBUG if self.known.is_set() else logging.INFO
                self.known.set()
                await self._wait(error, level)
            except (ApiError, ConnectionFailed) as error:
                await self._wait(error)

    async def _wait(self, error: KubeError, level: int = logging.WARNING) -> None:
        seconds = self._backoff.next(error.retry_after if isinstance(error, ApiError) else None)
        _log.log(level, "%s: try again in %.1f s: %s", self._resource.plural, seconds, error)
        await asyncio.sleep(seconds)

    async def _list(self) -> None:
        self.lists += 1
        fresh: dict[Key, V] = {}
        version = ""
        pages = self._client.pages(
            self._resource,
            self._namespace,
            label_selector=self._labels,
            field_selector=self._fields,
            # A collection whose pages expired before the last came is read in one piece.
            page_size=0 if self._pages_expired else self._page_size,
        )
        try:
            async with aclosing(pages):
                async for page in pages:
                    self._read(page, fresh)
                    version = page.resource_version
        except Gone:
            self._pages_expired = True
            raise
        self._pages_expired = False
        self._become(fresh)
        self._version = version
        self._backoff.reset()
        if not self.synced.is_set():
            self.synced.set()
            self.known.set()
            self._on_change(Change(ChangeKind.SYNCED, ("", ""), None, None))

    def _read(self, page: Page[T], fresh: dict[Key, V]) -> None:
        for item in page:
            key = self._interned(item)
            new, old = self._project(item), self._values.get(key)
            # Of two equals the old one is kept: a second list does not double the memory.
            fresh[key] = old if old is not None and old == new else new
        for bad in page.undecodable:
            self._drop(bad)

    def _become(self, fresh: dict[Key, V]) -> None:
        """Deliver the difference to a new list: first what is gone, so that its room is free."""
        for key, old in list(self._values.items()):
            new = fresh.get(key)
            if new is None or self._is_another(old, new):
                self._remove(key)
        for key, new in fresh.items():
            self._put(key, new)

    def _is_another(self, old: V, new: V) -> bool:
        return self._identity is not None and self._identity(old) != self._identity(new)

    async def _follow(self) -> None:
        self.watches += 1
        loop = asyncio.get_running_loop()
        begin = loop.time()
        heard = False
        watch = self._client.watch(
            self._resource,
            resource_version=self._version,
            namespace=self._namespace,
            label_selector=self._labels,
            field_selector=self._fields,
            timeout_seconds=int(WATCH_SECONDS * (1 + self._jitter())),
            idle_timeout=self._idle_timeout,
        )
        async with aclosing(watch.batches()) as batches:
            async for lines in batches:
                self._take(lines)
                self._version = lines.resource_version or self._version
                heard = True
                self._backoff.reset()
        if not heard and loop.time() - begin < SHORT_WATCH:
            raise ConnectionFailed("the server ended the watch at once")

    def _take(self, lines: Lines[T]) -> None:
        begin = 0
        for bad in lines.undecodable:
            self._apply(lines.events[begin : bad.after])
            self._drop(bad)
            begin = bad.after
        self._apply(lines.events[begin:] if begin else lines.events)

    def _apply(self, events: list[WatchEvent[T]]) -> None:
        for event in events:
            key = self._interned(event.object)
            if event.type == "DELETED":
                self._remove(key)
            else:
                self._put(key, self._project(event.object))

    def _put(self, key: Key, new: V) -> None:
        old = self._values.get(key)
        if old is None:
            self._values[key] = new
            self._on_change(Change(ChangeKind.ADDED, key, None, new))
        elif old is not new and old != new:
            self._values[key] = new
            self._on_change(Change(ChangeKind.MODIFIED, key, old, new))

    def _remove(self, key: Key) -> None:
        old = self._values.pop(key, None)
        if old is not None:
            self._on_change(Change(ChangeKind.DELETED, key, old, None))

    def _drop(self, bad: Undecodable) -> None:
        _log.error(
            "%s %s/%s does not fit our type and counts as absent: %s",
            self._resource.kind,
            bad.namespace,
            bad.name,
            bad.problem,
        )
        self._remove((sys.intern(bad.namespace), bad.name))

    def _interned(self, item: T) -> Key:
        namespace, name = self._key(item)
        # A cluster has few namespaces and many pods: one string for each namespace.
        return sys.intern(namespace), name

"""Events for people: what we did to an object and why, shown by `kubectl describe`.

`record` never waits and never fails, so that telling costs the teller nothing: events are queued,
repeats are counted instead of queued, and few requests are in flight at a time, so that a burst of
ten thousand events trickles out beside the work that caused it. What does not fit into the queue is
dropped (the oldest repeat first) and counted.
"""

import asyncio
import datetime as dt
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Literal

import msgspec

from alnair.kube.backoff import Backoff
from alnair.kube.client import MERGE_PATCH, Client
from alnair.kube.errors import AlreadyExists, ApiError, ConnectionFailed, NotFound
from alnair.kube.resources import EVENTS

EventKind = Literal["Normal", "Warning"]

#: Most characters of a message; `events.k8s.io` refuses more, and so do we for the core kind.
LONGEST_MESSAGE = 1024
#: Least number of events remembered for counting their repeats, whatever the capacity.
REMEMBERED = 4096

_log = logging.getLogger(__name__)


class ObjectReference(msgspec.Struct, frozen=True, rename="camel"):
    """The object that an event is about; the namespace is "" for cluster-wide kinds."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"
    resource_version: str = ""


class _Meta(msgspec.Struct, frozen=True):
    name: str
    namespace: str


class _Source(msgspec.Struct, frozen=True, omit_defaults=True):
    component: str
    host: str = ""


class _CoreEvent(msgspec.Struct, frozen=True, rename="camel"):
    metadata: _Meta
    involved_object: ObjectReference
    reason: str
    message: str
    type: EventKind
    source: _Source
    first_timestamp: str
    last_timestamp: str
    count: int
    reporting_component: str
    reporting_instance: str
    api_version: str = "v1"
    kind: str = "Event"


_Key = tuple[ObjectReference, str, str]


class _Entry:
    """An event that was written once or often; `name` is "" until an object was written for it.

    It rests while a repeat of it waits for its time. While it is being written, a repeat waits for
    that: of two requests at a time the later one may arrive first.
    """

    __slots__ = (
        *("count", "first", "is_due", "is_queued", "is_resting", "is_written"),
        *("key", "kind", "last", "name"),
        *("told_at", "written_at"),
    )

    def __init__(self, key: _Key, kind: EventKind, now: dt.datetime) -> None:
        self.key = key
        self.kind = kind
        self.first = now
        self.last = now
        self.count = 1
        self.name = ""
        self.is_queued = False
        self.is_resting = False
        self.is_written = False
        self.is_due = False
        self.told_at = 0.0
        self.written_at = 0.0


def utc_now() -> dt.datetime:
    """Return the wall clock, for the stamps in events."""
    return dt.datetime.now(dt.UTC)


class EventRecorder:
    """Writes events of one component.

    Args:
        client: An open client.
        component: Who tells, such as "alnair-scheduler".
        instance: Which copy of it, such as its host name.
        capacity: Events that may wait. For a burst without loss, at least the size of the burst.
        window: Seconds within which the same (object, reason, message) is a repeat.
        repeat_every: Seconds between two writes of one event at least: repeats in between are told
            together.
        in_flight: Requests at a time.
        calm: While it is clear, one request at a time: more urgent work goes first.
        clock: Monotonic seconds, for the window.
        now: Wall clock, for the stamps.
        backoff: Waits while the server refuses or cannot be reached; nothing is lost by that.

    Attributes:
        written: Events and repeats that reached the server.
        dropped: Events and repeats that did not fit into the queue.
        refused: Events that the server refused for good (a namespace that is being deleted).
    """

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        instance: str = "",
        capacity: int = 10_000,
        window: float = 600.0,
        repeat_every: float = 0.0,
        in_flight: int = 4,
        calm: asyncio.Event | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], dt.datetime] = utc_now,
        backoff: Callable[[], Backoff] = Backoff,
    ) -> None:
        if capacity < 1 or in_flight < 1:
            raise ValueError("capacity and in_flight must be at least 1")
        self._client = client
        self._source = _Source(component, instance)
        self._capacity = capacity
        self._window = window
        self._repeat_every = repeat_every
        self._in_flight = in_flight
        self._calm = calm
        self._clock = clock
        self._now = now
        self._backoff = backoff
        self._known: OrderedDict[_Key, _Entry] = OrderedDict()
        self._new: deque[_Entry] = deque()
        self._repeats: deque[_Entry] = deque()
        #: Repeats whose time has not come.
        self._resting: deque[_Entry] = deque()
        self._rests = asyncio.Event()
        self._busy = 0
        self._serial = 0
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.written = 0
        self.dropped = 0
        self.refused = 0

    @property
    def pending(self) -> int:
        """Events and repeats that wait or are being written."""
        return len(self._new) + len(self._repeats) + self._busy

    def record(
        self, involved: ObjectReference, reason: str, message: str, kind: EventKind = "Normal"
    ) -> None:
        """Tell something about an object. Returns at once.

        Args:
            involved: The object.
            reason: One word in CamelCase, for programs.
            message: A sentence, for people; cut at 1,024 characters.
            kind: "Warning" if someone should look.
        """
        if len(message) > LONGEST_MESSAGE:
            message = message[: LONGEST_MESSAGE - 1] + "…"
        key = (involved, reason, message)
        entry = self._known.get(key)
        moment = self._clock()
        if entry is not None and (
            entry.is_queued or entry.is_resting or moment - entry.written_at < self._window
        ):
            entry.count += 1
            entry.last = self._now()
        else:
            entry = self._known[key] = _Entry(key, kind, self._now())
        self._known.move_to_end(key)
        while len(self._known) > max(REMEMBERED, self._capacity):
            self._known.popitem(last=False)
        entry.written_at = moment
        if entry.is_queued or entry.is_resting:
            return
        if entry.is_written:
            entry.is_due = True
            return
        self._come_again(entry)

    def _come_again(self, entry: _Entry) -> None:
        """Have an entry written, a repeat when its time has come."""
        if entry.name and self._clock() < entry.told_at + self._repeat_every:
            entry.is_resting = True
            self._resting.append(entry)
            self._rests.set()
        else:
            self._enqueue(entry)

    def _enqueue(self, entry: _Entry) -> None:
        if len(self._new) + len(self._repeats) >= self._capacity:
            # A dropped repeat keeps its count: the next one of its kind brings it along.
            victim = self._repeats.popleft() if self._repeats else self._new.popleft()
            victim.is_queued = False
            if not victim.name:
                self._known.pop(victim.key, None)
            self.dropped += 1
        entry.is_queued = True
        (self._repeats if entry.name else self._new).append(entry)
        self._work.set()
        self._idle.clear()

    async def run(self) -> None:
        """Write what is recorded, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat())
            group.create_task(self._writer(None))
            for _ in range(self._in_flight - 1):
                group.create_task(self._writer(self._calm))

    async def _repeat(self) -> None:
        """Queue repeats when their time comes."""
        while True:
            while not self._resting:
                self._rests.clear()
                await self._rests.wait()
            entry = self._resting.popleft()
            wait = entry.told_at + self._repeat_every - self._clock()
            if wait > 0:  # who is behind it and is due before is late by less than the pause
                await asyncio.sleep(wait)
            entry.is_resting = False
            self._enqueue(entry)

    async def drain(self, seconds: float) -> int:
        """Wait until all is written, while `run` runs; return how many still wait.

        Args:
            seconds: To wait at most.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("%d events are not written yet", self.pending)
        return self.pending

    async def _writer(self, calm: asyncio.Event | None) -> None:
        backoff = self._backoff()
        while True:
            while not self._new and not self._repeats:
                self._work.clear()
                await self._work.wait()
            if calm is not None and not calm.is_set():
                await calm.wait()
                continue
            # What nobody knows yet goes before what somebody can read already.
            entry = self._new.popleft() if self._new else self._repeats.popleft()
            self._busy += 1
            try:
                await self._deliver(entry, backoff)
            finally:
                self._busy -= 1
                entry.is_written = False
                if entry.is_due:
                    entry.is_due = False
                    self._come_again(entry)
                if not self.pending:
                    self._idle.set()

    async def _deliver(self, entry: _Entry, backoff: Backoff) -> None:
        # From here on a repeat must be queued again: this write does not carry it any more.
        entry.is_queued = False
        entry.is_written = True
        entry.told_at = self._clock()
        while True:
            try:
                await self._write(entry)
            except (ApiError, ConnectionFailed) as error:
                transient = isinstance(error, ConnectionFailed) or error.is_transient
                if not transient:
                    self.refused += 1
                    _log.info("event %s is refused: %s", entry.key[1], error)
                    return
                asked = error.retry_after if isinstance(error, ApiError) else None
                await asyncio.sleep(backoff.next(asked))
            else:
                self.written += 1
                backoff.reset()
                return

    async def _write(self, entry: _Entry) -> None:
        namespace = entry.key[0].namespace or "default"
        if entry.name and entry.count > 1:
            patch = {"count": entry.count, "lastTimestamp": _stamp(entry.last)}
            path = EVENTS.item(entry.name, namespace)
            try:
                await self._client.raw(
                    "PATCH", path, body=msgspec.json.encode(patch), content_type=MERGE_PATCH
                )
            except NotFound:
                # Events live an hour by default: this one is history, tell it anew.
                entry.name = ""
            else:
                return
        entry.name = entry.name or self._fresh_name(entry.key[0].name)
        body = msgspec.json.encode(self._event(entry, namespace))
        try:
            await self._client.raw("POST", EVENTS.collection(namespace), body=body)
        except AlreadyExists:
            # Names are never used twice, so this is our own write whose answer was lost.
            return

    def _event(self, entry: _Entry, namespace: str) -> _CoreEvent:
        involved, reason, message = entry.key
        return _CoreEvent(
            metadata=_Meta(entry.name, namespace),
            involved_object=involved,
            reason=reason,
            message=message,
            type=entry.kind,
            source=self._source,
            first_timestamp=_stamp(entry.first),
            last_timestamp=_stamp(entry.last),
            count=entry.count,
            reporting_component=self._source.component,
            reporting_instance=self._source.host,
        )

    def _fresh_name(self, involved: str) -> str:
        # As client-go: the object's name and the time in hexadecimal; the serial makes it unique.
        self._serial += 1
        nanoseconds = int(self._now().timestamp() * 1e6) * 1000 + self._serial % 1000
        return f"{involved[:230]}.{nanoseconds:x}"


def _stamp(moment: dt.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

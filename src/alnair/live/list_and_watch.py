"""A collection followed from outside, with the time at which each change could be known.

An informer keeps a copy and hides how it came about; who measures latencies, or judges who knew
what and when, needs the changes themselves, in the order of the server, and when they arrived.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Generic, TypeVar

import msgspec

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.codec import WatchEvent
from alnair.kube.errors import ApiError, ConnectionFailed, Gone
from alnair.kube.resources import Resource

T = TypeVar("T")

#: A read that returned at once may have found data that had been waiting for us.
_AT_ONCE: Final = 0.02
#: After a broken stream, the backlog comes in several reads: so long (seconds) it is taken for one.
_BACKLOG: Final = 1.0
#: A refusal is borne for so long (seconds) if the server has answered us before.
_PARDON: Final = 30.0


class Batch(msgspec.Struct, Generic[T], frozen=True):
    """What one answer of the server brought.

    Attributes:
        listed: The whole collection; what is not in it is gone. None for a batch of changes.
        events: The changes, in order.
        arrived: When we had it, by the monotonic clock.
        earliest: The changes had happened after this, so far as can be told from here.
    """

    listed: list[T] | None
    events: list[WatchEvent[T]]
    arrived: float
    earliest: float


async def follow(
    client: Client,
    resource: Resource[T],
    *,
    namespace: str | None = None,
    label_selector: str | None = None,
) -> AsyncGenerator[Batch[T]]:
    """Yield a list and then all changes, for ever; survives restarts of the server.

    Raises:
        ConnectionFailed: The server was never reached.
        ApiError: The server refuses for good: no rights, no such kind.
        ProtocolError: An object does not fit the type.
    """
    backoff = Backoff(first=0.1, most=2.0)
    version = ""
    contact = backlog_until = 0.0
    while True:
        try:
            if not version:
                listing = await client.list(resource, namespace, label_selector=label_selector)
                now = time.monotonic()
                version = listing.resource_version
                yield Batch(listing.items, [], now, contact)
                contact = now
            watch = client.watch(
                resource,
                resource_version=version,
                namespace=namespace,
                label_selector=label_selector,
            )
            async with aclosing(watch.batches()) as batches:
                asked = time.monotonic()
                async for lines in batches:
                    lines.check()
                    now = time.monotonic()
                    waited = now - asked > _AT_ONCE and now > backlog_until
                    if lines.events:
                        yield Batch(None, lines.events, now, now if waited else contact)
                    if waited or now > backlog_until:
                        contact = now
                    version = lines.resource_version or version
                    backoff.reset()
                    asked = time.monotonic()
        except Gone:
            version = ""
        except (ConnectionFailed, ApiError) as error:
            # A server that has just started refuses what it granted before, until its own caches
            # are filled.
            is_pardoned = time.monotonic() - contact < _PARDON
            is_final = isinstance(error, ApiError) and not error.is_transient
            if not contact or (is_final and not is_pardoned):
                raise
            await asyncio.sleep(backoff.next())
            backlog_until = time.monotonic() + _BACKLOG

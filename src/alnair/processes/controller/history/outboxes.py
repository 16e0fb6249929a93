"""Reads the outboxes of agents: what pods used, from each node, once and no line less.

An agent keeps what ended until it is told that it was taken over. Lines and how far they were read
are written in one transaction, and only then the agent may forget them: who is killed in between
reads them again, finds them known, and says so.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from alnair.history.database import writing
from alnair.history.database.rows import Changes, Position
from alnair.model import names
from alnair.model.usage import PodUsage
from alnair.processes.controller.history.seen import Agent
from alnair.processes.controller.history.store import Store

_log = logging.getLogger(__name__)

#: Seconds between visits of an agent.
PERIOD: Final = 15.0
PATH: Final = "/v1/usage"
#: Visits of an agent of which one asks what runs: that is overwritten each time, and costs a write.
_RUNNING_EVERY: Final = 4
_SECONDS: Final = 10.0
_AT_ONCE: Final = 16
#: Bytes of an answer: a thousand pods take some megabytes.
_MOST: Final = 64 << 20


class Entry(msgspec.Struct, frozen=True):
    """A pod that ended, and its place in the outbox."""

    seq: int
    usage: PodUsage


class Page(msgspec.Struct, frozen=True):
    """What an agent answers.

    Attributes:
        v: 1.
        stream: Of these numbers; another one where the outbox was begun anew.
        last: The largest number there is.
        ended: Of pods that ended, in the order of their numbers; maybe not all of them at once.
        running: Of pods that are there, until now.
    """

    v: int
    stream: str
    last: int
    ended: list[Entry] = []
    running: list[PodUsage] = []


class OutboxError(Exception):
    """An agent cannot be read; says why."""


class Outboxes:
    """Visits agents.

    Args:
        store: Where to write.
        agents: Who is there now.
        urls: Of agents that are no pods.
        secure: Whether agents that are pods speak TLS.
        token: File with a token for us, for the audience of our pages; None: none is sent.
        period: Seconds between visits.
        running: Told of the pods that run, at each visit.
    """

    def __init__(
        self,
        store: Store,
        agents: Callable[[], Iterable[Agent]],
        *,
        urls: Iterable[str] = (),
        secure: bool = False,
        token: Path | None = None,
        period: float = PERIOD,
        running: Callable[[Iterable[PodUsage]], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._agents = agents
        self._urls = tuple(urls)
        self._secure = secure
        self._token = token
        self._period = period
        self._running = running
        self._page = msgspec.json.Decoder(Page)
        #: Visits of each agent since what runs there was written.
        self._visits: dict[str, int] = {}
        #: Agents whose failure was told.
        self._told: set[str] = set()

    async def run(self) -> None:
        """Visit all agents, again and again, until cancelled."""
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                await self.visit_all(session)
                await asyncio.sleep(self._period)

    async def visit_all(self, session: aiohttp.ClientSession) -> None:
        """Visit each agent once."""
        limit = asyncio.Semaphore(_AT_ONCE)
        scheme = "https" if self._secure else "http"
        known = [(url, url, "") for url in self._urls]
        for one in self._agents():
            host = f"[{one.address}]" if ":" in one.address else one.address
            known.append((one.node, f"{scheme}://{host}:{one.port}", one.node))

        async def visit(key: str, url: str, node: str) -> None:
            async with limit:
                try:
                    await self._visit(session, key, url, node)
                    self._told.discard(key)
                except (OutboxError, aiohttp.ClientError, TimeoutError, OSError) as error:
                    level = logging.DEBUG if key in self._told else logging.WARNING
                    why = str(error) or "no answer in time"
                    _log.log(level, "the agent of %s cannot be read: %s", key, why)
                    self._told.add(key)

        async with asyncio.TaskGroup() as group:
            for key, url, node in known:
                group.create_task(visit(key, url, node))
        there = {key for key, _, _ in known}
        self._told &= there
        self._visits = {key: count for key, count in self._visits.items() if key in there}

    async def _visit(self, session: aiohttp.ClientSession, key: str, url: str, node: str) -> None:
        position = await self._store.carry_out(lambda found: writing.position(found, key))
        while True:
            page = await self._read(session, url, position.seq)
            if page.stream != position.stream:
                # The numbers begin anew: what we asked for was of another stream.
                if position.seq:
                    page = await self._read(session, url, 0)
                position = Position(key, page.stream, 0)
            self._running(one for one in page.running if not node or one.node == node)
            fresh = [entry for entry in page.ended if entry.seq > position.seq]
            reached = max((entry.seq for entry in fresh), default=position.seq)
            position = Position(key, page.stream, reached)
            usages = [entry.usage for entry in fresh]
            if page.running and self._is_time(key):
                usages += page.running
            mine = [one for one in usages if not node or one.node == node]
            if len(mine) < len(usages):
                _log.warning("the agent of %s tells of other nodes: that is left out", key)
            if usages:
                changes = Changes(usages=mine, position=position)
                await self._store.write(changes)
            if page.ended:
                await self._forget(session, url, position)
            if not fresh or reached >= page.last:
                return

    def _is_time(self, key: str) -> bool:
        """Whether what runs on a node is to be written again."""
        visits = self._visits.get(key, 0)
        self._visits[key] = (visits + 1) % _RUNNING_EVERY
        return not visits

    async def _read(self, session: aiohttp.ClientSession, url: str, after: int) -> Page:
        data = await self._ask(session, "GET", url, {"after": str(after)})
        try:
            page = self._page.decode(data)
        except msgspec.MsgspecError as error:
            raise OutboxError(f"this is no outbox: {error}") from error
        if page.v != 1:
            raise OutboxError(f"its outbox is of version {page.v}, and this controller knows 1")
        return page

    async def _forget(self, session: aiohttp.ClientSession, url: str, position: Position) -> None:
        query = {"upto": str(position.seq), "stream": position.stream}
        await self._ask(session, "DELETE", url, query)

    async def _ask(
        self, session: aiohttp.ClientSession, method: str, url: str, query: dict[str, str]
    ) -> bytes:
        headers = {}
        if self._token is not None and url.startswith("https:"):
            headers[names.TOKEN_HEADER] = self._token.read_text().strip()
        # Nobody can verify the certificate of a pod; the token opens these pages alone (0020).
        async with session.request(
            method, f"{url}{PATH}", params=query, headers=headers, ssl=False
        ) as answer:
            if answer.status >= 300:
                text = (await answer.text())[:200].strip()
                raise OutboxError(f"it answers {answer.status}: {text}")
            data = await answer.content.read(_MOST + 1)
            while len(data) <= _MOST and (more := await answer.content.read(_MOST)):
                data += more
            if len(data) > _MOST:
                raise OutboxError(f"its answer is larger than {_MOST} bytes")
            return data

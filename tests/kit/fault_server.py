"""A small server with one collection that misbehaves on demand.

It speaks list and watch just well enough for an informer, over real sockets. It exists only for the
faults that a real API server cannot be made to show when a test wants them; everything that one can
show is tested against the real one.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from alnair.kube.access.connection import Connection
from alnair.kube.resources import Resource, grouped

Fault = Callable[["FaultServer", web.Request], Awaitable[web.StreamResponse]]


class ThingMeta(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str


class Thing(msgspec.Struct, frozen=True):
    metadata: ThingMeta
    value: int


THINGS: Resource[Thing] = grouped("test.alnair", "v1", "things", "Thing").typed(Thing)


def line(kind: str, thing: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


def status(code: int, reason: str, message: str = "as the test asked") -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


@dataclass
class FaultServer:
    """Things by name in namespace "n", a log of their changes, and the faults to come.

    Attributes:
        list_faults: Consumed one by a list request.
        watch_faults: Consumed one by a watch request.
        oldest: Watches and pages from before this version are Gone.
    """

    things: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[tuple[int, bytes]] = field(default_factory=list)
    version: int = 100
    oldest: int = 0
    #: What there was at the version of each list whose next pages may still be asked for.
    listed: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    list_faults: deque[Fault] = field(default_factory=deque)
    watch_faults: deque[Fault] = field(default_factory=deque)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    url: str = ""

    @property
    def connection(self) -> Connection:
        return Connection(self.url)

    @property
    def values(self) -> dict[tuple[str, str], int]:
        return {("n", name): thing["value"] for name, thing in self.things.items()}

    async def put(self, name: str, value: int, uid: str = "") -> None:
        self.version += 1
        kind = "MODIFIED" if name in self.things else "ADDED"
        self.things[name] = self.make(name, value, uid)
        await self._tell(line(kind, self.things[name]))

    async def delete(self, name: str) -> None:
        self.version += 1
        last = self.things.pop(name)
        metadata = {**last["metadata"], "resourceVersion": str(self.version)}
        await self._tell(line("DELETED", {**last, "metadata": metadata}))

    async def tell_bookmark(self) -> None:
        self.version += 1
        mark = {"kind": "Thing", "metadata": {"resourceVersion": str(self.version)}}
        await self._tell(line("BOOKMARK", mark))

    def forget_history(self) -> None:
        """As etcd's compaction does: no watch can start in the past any more."""
        self.log.clear()
        self.oldest = self.version

    def make(self, name: str, value: object, uid: str = "") -> dict[str, Any]:
        metadata = {
            "name": name,
            "namespace": "n",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(self.version),
        }
        return {"kind": "Thing", "metadata": metadata, "value": value}

    async def _tell(self, data: bytes) -> None:
        async with self.changed:
            self.log.append((self.version, data))
            self.changed.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.path, dict(request.query)))
        is_watch = "watch" in request.query
        faults = self.watch_faults if is_watch else self.list_faults
        if faults:
            return await faults.popleft()(self, request)
        return await self.watch(request) if is_watch else self.page(request)

    def page(self, request: web.Request) -> web.Response:
        """Answer with a page; all pages of a list are of the moment of its first one."""
        if "continue" in request.query:
            version, begin = map(int, request.query["continue"].split("+"))
            if version < self.oldest:
                return web.json_response(status(410, "Expired"), status=410)
        else:
            version, begin = self.version, 0
            self.listed[version] = [self.things[name] for name in sorted(self.things)]
        things = self.listed[version]
        end = begin + (int(request.query.get("limit", "0")) or len(things))
        meta = {"resourceVersion": str(version)}
        if end < len(things):
            meta["continue"] = f"{version}+{end}"
        return web.json_response(
            {"kind": "ThingList", "metadata": meta, "items": things[begin:end]}
        )

    async def watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        seen = int(request.query["resourceVersion"])
        while True:
            if seen < self.oldest:
                await response.write(line("ERROR", status(410, "Expired")))
                return response
            for version, data in [one for one in self.log if one[0] > seen]:
                await response.write(data)
                seen = version
            async with self.changed:
                while not self.log or self.log[-1][0] <= seen:
                    await self.changed.wait()


@asynccontextmanager
async def serving(server: FaultServer) -> AsyncIterator[FaultServer]:
    # Open watches end with the test, not after the grace period of a well-behaved server.
    handler = web.Server(server.handle, handler_cancellation=True)
    runner = web.ServerRunner(handler, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


def refuse(code: int, reason: str, retry_after: int | None = None) -> Fault:
    """Answer with a Status."""

    async def fault(server: FaultServer, request: web.Request) -> web.StreamResponse:
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return web.json_response(status(code, reason), status=code, headers=headers)

    return fault


def send(*chunks: bytes, then_cut: bool = True, after: float = 0.0) -> Fault:
    """Open the stream, write these bytes, and cut the connection (or end the stream well).

    Args:
        chunks: What is written.
        then_cut: Whether the connection is cut: what the reader has not read by then is lost.
        after: Seconds until then.
    """

    async def fault(server: FaultServer, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        await asyncio.sleep(after)
        if then_cut and request.transport is not None:
            request.transport.abort()
        return response

    return fault


def silence() -> Fault:
    """Open the stream and never write, as a half-open connection looks to the reader."""

    async def fault(server: FaultServer, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    return fault

"""A small server with one pod and its log, whose connections break where a test wants it."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from aiohttp import web

from alnair.kube.access.connection import Connection
from kit.fault_server import status


def stamped(second: int, nanosecond: int, text: str) -> bytes:
    """A line of the first minute of 2026-01-31, as the kubelet writes it."""
    return f"2026-01-31T00:00:{second:02}.{nanosecond:09}Z {text}\n".encode()


@dataclass
class LogServer:
    """Answers for pod "p" of namespace "n" as a kubelet behind an API server does.

    Attributes:
        lines: What the container has written.
        ended: Whether it has ended.
        cuts: For each connection to come: after how many bytes it breaks; None is to the end.
        refusals: Status codes for log requests to come, before all else.
    """

    lines: list[bytes] = field(default_factory=list)
    ended: bool = True
    uid: str = "u"
    policy: str = "Never"
    exit_code: int = 0
    cuts: deque[int | None] = field(default_factory=deque)
    refusals: deque[int] = field(default_factory=deque)
    requests: list[dict[str, str]] = field(default_factory=list)
    written: asyncio.Condition = field(default_factory=asyncio.Condition)
    url: str = ""

    @property
    def connection(self) -> Connection:
        return Connection(self.url)

    async def write(self, *lines: bytes, ended: bool = False) -> None:
        async with self.written:
            self.lines += lines
            self.ended |= ended
            self.written.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1/namespaces/n/pods/p":
            return self._pod()
        if request.path != "/api/v1/namespaces/n/pods/p/log":
            return web.json_response(status(404, "NotFound"), status=404)
        self.requests.append(dict(request.query))
        refused = self.refusals.popleft() if self.refusals else None
        await self.write()  # who waits for a request sees it
        if refused is not None:
            code = refused
            reason = {400: "BadRequest", 403: "Forbidden", 404: "NotFound"}.get(code, "")
            return web.json_response(status(code, reason), status=code)
        return await self._log(request)

    def _pod(self) -> web.Response:
        state = {"terminated": {"exitCode": self.exit_code}} if self.ended else {"running": {}}
        return web.json_response(
            {
                "metadata": {"name": "p", "namespace": "n", "uid": self.uid},
                "spec": {"restartPolicy": self.policy, "containers": [{"name": "main"}]},
                "status": {
                    "phase": "Running",
                    "containerStatuses": [{"name": "main", "state": state}],
                },
            }
        )

    async def _log(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        cut = self.cuts.popleft() if self.cuts else None
        since = request.query.get("sinceTime", "")
        sent, at = 0, 0
        while True:
            for line in self.lines[at:]:
                at += 1
                if since and line[:19].decode() < since[:19]:
                    continue
                part = line if cut is None else line[: cut - sent]
                await response.write(part)
                sent += len(part)
                if cut is not None and sent >= cut:
                    assert request.transport is not None
                    await asyncio.sleep(0.01)  # or what was written would be thrown away, too
                    request.transport.abort()
                    return response
            if self.ended and at == len(self.lines):
                return response
            async with self.written:
                while at == len(self.lines) and not self.ended:
                    await self.written.wait()


def second_of(line: bytes) -> float:
    return datetime.fromisoformat(line[:19].decode() + "Z").timestamp()

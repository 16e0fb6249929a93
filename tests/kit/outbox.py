"""An agent's outbox, as a server of a test: what it holds, and what it was told to forget."""

from typing import Any, Self

import msgspec
from aiohttp import web

from alnair.model.usage import PodUsage

PATH = "/v1/usage"


class Outbox:
    """Serves what a node's agent would; it outlives those who read it.

    Attributes:
        held: What has ended, by its number, until it is forgotten.
        running: What is there.
        asked: Numbers after which was asked, in order.
        forgotten: Numbers up to which was forgotten, in order.
    """

    def __init__(self, stream: str = "first", page: int = 1000) -> None:
        self.stream = stream
        self.last = 0
        self.held: dict[int, PodUsage] = {}
        self.running: list[PodUsage] = []
        self.asked: list[int] = []
        self.forgotten: list[int] = []
        self._page = page
        app = web.Application()
        app.router.add_get(PATH, self._get)
        app.router.add_delete(PATH, self._delete)
        self._runner = web.AppRunner(app, access_log=None)
        self.url = ""

    def add(self, usage: PodUsage) -> None:
        """Note that a pod has ended."""
        self.last += 1
        self.held[self.last] = usage

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _get(self, request: web.Request) -> web.Response:
        after = int(request.query["after"])
        self.asked.append(after)
        seqs = sorted(seq for seq in self.held if seq > after)[: self._page]
        body: dict[str, Any] = {
            "v": 1,
            "stream": self.stream,
            "last": self.last,
            "ended": [{"seq": seq, "usage": self.held[seq]} for seq in seqs],
            "running": self.running,
        }
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")

    async def _delete(self, request: web.Request) -> web.Response:
        if request.query.get("stream", self.stream) != self.stream:
            return web.Response(status=409, text="these numbers are of another stream")
        upto = int(request.query["upto"])
        self.forgotten.append(upto)
        self.held = {seq: one for seq, one in self.held.items() if seq > upto}
        return web.Response(status=204)

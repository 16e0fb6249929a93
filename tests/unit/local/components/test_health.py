"""Components are asked whether they are well, and have the time for it that the asker has."""

import asyncio

import aiohttp
from aiohttp import web

from alnair.local.components import health
from alnair.serving.server import Server


async def test_an_answer_that_is_late_is_good_for_who_waits_longer() -> None:
    stands_still = asyncio.Event()

    async def healthz(_: web.Request) -> web.Response:
        await stands_still.wait()
        return web.Response(text="ok")

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    async with Server(app, "127.0.0.1", 0) as server:
        url = f"{server.url}/healthz"
        assert await health.ask(url, aiohttp.TCPConnector(), 0.05) == "no answer within 0.05 s"
        asked = asyncio.create_task(health.ask(url, aiohttp.TCPConnector(), health.ONCE_SECONDS))
        asyncio.get_running_loop().call_later(0.1, stands_still.set)
        assert await asked is None

"""The agent's process: everything that runs on a GPU node, started together, ended together."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import msgspec
from aiohttp import web

from alnair.apps.agency.admin import Admin
from alnair.apps.agency.metrics import exposition
from alnair.apps.scheduling.exposition import CONTENT_TYPE
from alnair.apps.scheduling.server import Server
from alnair.node.vgpu.server import VgpuServer

_log = logging.getLogger(__name__)


class Settings(msgspec.Struct, frozen=True):
    """What the process can be told; see the options of the command."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    policy: Literal["warn", "throttle", "evict"] = "warn"
    node: str = ""
    kubeconfig: Path | None = None
    in_cluster: bool = False


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; the containers go on by what their pages say.

    Raises:
        OSError: The folder cannot be used.
        ServeError: The address of the metrics is taken.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with _agent(settings) as url:
        # Scripts and tests wait for this line.
        print(f"ready: folder {settings.folder}, metrics {url}/metrics", flush=True)
        await stop.wait()
    _log.info("stopped; containers keep their limits")


@contextlib.asynccontextmanager
async def _agent(settings: Settings) -> AsyncIterator[str]:
    async with (
        VgpuServer(settings.folder) as server,
        Server(_application(server), settings.host, settings.port) as http,
        Admin(settings.folder / "admin.sock", server),
    ):
        yield http.url


def _application(server: VgpuServer) -> web.Application:
    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=exposition(server).encode(), headers={"Content-Type": CONTENT_TYPE}
        )

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/metrics", metrics)
    return app

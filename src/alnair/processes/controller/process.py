"""The controller process: stands by with full caches, and writes while it leads."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from aiohttp import web

from alnair.kube import config
from alnair.kube.client import Client
from alnair.kube.errors import LeadershipLost
from alnair.kube.lease import LeaderElector
from alnair.model import names
from alnair.processes.controller.elastic_quotas import Quotas
from alnair.processes.controller.pod_groups import Groups
from alnair.serving.server import Server

_log = logging.getLogger(__name__)

_CONNECTIONS = 16


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the process can be told; durations are in seconds."""

    kubeconfig: Path | None = None
    context: str | None = None
    #: Unique per process.
    identity: str = ""
    host: str = "127.0.0.1"
    port: int = 0
    leader_elect: bool = True
    lease_duration: int = 12
    renew_deadline: float = 8.0
    retry_period: float = 2.0


async def serve(settings: Settings) -> None:
    """Control until SIGTERM or SIGINT, then hand over."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    connection = config.load(settings.kubeconfig, settings.context)
    async with Client(connection, max_connections=_CONNECTIONS) as client:
        work = asyncio.create_task(_run(settings, client))
        ended = asyncio.create_task(stop.wait())
        await asyncio.wait((work, ended), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not work.done():
            work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


async def _run(settings: Settings, client: Client) -> None:
    groups, quotas = Groups(client), Quotas(client)

    async def write() -> None:
        async with asyncio.TaskGroup() as both:
            both.create_task(groups.run_writes())
            both.create_task(quotas.run_writes())

    ready = asyncio.Event()
    async with Server(_application(ready.is_set), settings.host, settings.port) as server:
        _log.info("serving health at %s/healthz", server.url)
        async with asyncio.TaskGroup() as group:
            group.create_task(groups.follow())
            group.create_task(quotas.follow())
            await groups.synced()
            ready.set()
            if not settings.leader_elect:
                await write()
            await _take_turns(settings, client, write)


async def _take_turns(
    settings: Settings, client: Client, write: Callable[[], Awaitable[None]]
) -> None:
    elector = LeaderElector(
        client,
        namespace=names.NAMESPACE,
        name=names.CONTROLLER,
        identity=settings.identity,
        lease_duration=settings.lease_duration,
        renew_deadline=settings.renew_deadline,
        retry_period=settings.retry_period,
    )
    while True:
        try:
            await elector.run(write)
        except LeadershipLost as error:
            _log.warning("%s; standing by", error)


def _application(ready: Callable[[], bool]) -> web.Application:
    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        if ready():
            return web.Response(text="ok")
        return web.Response(status=503, text="the cluster's objects are still being read")

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    return app

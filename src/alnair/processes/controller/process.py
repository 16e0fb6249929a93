"""The controller process: stands by with full caches, and writes while it leads."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.lease import LeaderElector
from alnair.kube.lease_timings import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD
from alnair.model import names
from alnair.processes.controller.elastic_quotas import QuotaStatusWriter
from alnair.processes.controller.endpoints import application
from alnair.processes.controller.history.settings import HistorySettings
from alnair.processes.controller.pod_groups import PodGroupStatusWriter
from alnair.serving.lifecycle import run_until_stopped
from alnair.serving.published_address import published
from alnair.serving.server import Secured, Server
from alnair.serving.tls import CertificateFiles

if TYPE_CHECKING:
    from alnair.processes.controller.history.keeper import HistoryKeeper

_log = logging.getLogger(__name__)

_CONNECTIONS = 16


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the process can be told; durations are in seconds."""

    #: Unique per process.
    identity: str = ""
    host: str = "127.0.0.1"
    port: int = 0
    secure: bool = False
    certificate: CertificateFiles | None = None
    leader_elect: bool = True
    lease_duration: int = LEASE_DURATION
    renew_deadline: float = RENEW_DEADLINE
    retry_period: float = RETRY_PERIOD
    #: Of jobs; None: none is kept.
    history: HistorySettings | None = None


async def serve(settings: Settings, cluster: Connection) -> None:
    """Control this cluster until SIGTERM or SIGINT, then hand over."""
    await run_until_stopped(_connect(settings, cluster))


async def _connect(settings: Settings, cluster: Connection) -> None:
    _log.info("the cluster is %s, by %s", cluster.server, cluster.source)
    async with Client(cluster, max_connections=_CONNECTIONS) as client:
        await _run(settings, client)


async def _run(settings: Settings, client: Client) -> None:
    groups, quotas = PodGroupStatusWriter(client), QuotaStatusWriter(client)
    history = await _history(settings, client, groups)

    async def write() -> None:
        async with asyncio.TaskGroup() as every:
            every.create_task(groups.run_writes())
            every.create_task(quotas.run_writes())
            if history is not None:
                every.create_task(history.run_writes())

    ready = asyncio.Event()
    secured = Secured(client, settings.certificate) if settings.secure else None
    app = application(ready.is_set)
    if history is not None:
        history.serve(app)
    async with Server(app, settings.host, settings.port, secured) as server:
        _log.info("serving health at %s/healthz", server.url)
        async with asyncio.TaskGroup() as group:
            group.create_task(groups.follow())
            group.create_task(quotas.follow())
            if history is not None:
                group.create_task(history.follow())
            await groups.synced()
            ready.set()
            if not settings.leader_elect:
                await write()
            await _take_turns(settings, client, write, published(server.url, os.environ))


async def _history(
    settings: Settings, client: Client, groups: PodGroupStatusWriter
) -> "HistoryKeeper | None":
    if settings.history is None:
        return None
    # The packages of databases are there only where a history is kept.
    from alnair.processes.controller.history.keeper import HistoryKeeper

    keeper = HistoryKeeper(client, settings.history, groups.reference, secure=settings.secure)
    await keeper.open()
    return keeper


async def _take_turns(
    settings: Settings, client: Client, write: Callable[[], Awaitable[None]], where: str
) -> None:
    elector = LeaderElector(
        client,
        namespace=names.NAMESPACE,
        name=names.CONTROLLER,
        identity=settings.identity,
        annotations={names.METRICS_URL: where} if where else None,
        lease_duration=settings.lease_duration,
        renew_deadline=settings.renew_deadline,
        retry_period=settings.retry_period,
    )
    await elector.run_again_and_again(write)

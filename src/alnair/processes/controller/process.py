"""The controller process: stands by with full caches, and writes while it leads."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import msgspec
from prometheus_client.metrics_core import Metric

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.leaders_client import LeadersClient
from alnair.kube.lease import LeaderElector
from alnair.kube.lease_timings import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD
from alnair.model import names
from alnair.model.rebalancing import RebalanceBounds
from alnair.processes.controller.elastic.operator import TrainingJobOperator
from alnair.processes.controller.elastic_quotas import QuotaStatusWriter
from alnair.processes.controller.endpoints import application, without_history
from alnair.processes.controller.history.settings import HistorySettings
from alnair.processes.controller.idle_evictions import IdleEvictions, IdleSettings
from alnair.processes.controller.pod_groups import PodGroupStatusWriter
from alnair.processes.controller.rebalancing import turned_off
from alnair.processes.controller.rebalancing.loop import Rebalancing
from alnair.serving.exposition import of_this_process
from alnair.serving.lifecycle import run_until_stopped
from alnair.serving.published_address import published
from alnair.serving.server import Secured, Server
from alnair.serving.tls import CertificateFiles

if TYPE_CHECKING:
    from alnair.processes.controller.history.keeper import HistoryKeeper

_log = logging.getLogger(__name__)

#: Each kind that is followed takes one; so many are left for writes.
_CONNECTIONS = 64


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
    #: Of pods that do not use their GPUs; None: nobody is evicted.
    idle: IdleSettings | None = None
    #: Of moves that let somebody start who waits; None: nobody is moved.
    rebalancing: RebalanceBounds | None = None


async def serve(settings: Settings, cluster: Connection) -> None:
    """Control this cluster until SIGTERM or SIGINT, then hand over."""
    await run_until_stopped(_connect(settings, cluster))


async def _connect(settings: Settings, cluster: Connection) -> None:
    _log.info("the cluster is %s, by %s", cluster.server, cluster.source)
    async with Client(cluster, max_connections=_CONNECTIONS) as client:
        await _run(settings, client)


async def _run(settings: Settings, client: Client) -> None:
    address = _Address()
    elector = _elector(settings, client, address) if settings.leader_elect else None

    def leads() -> bool:
        return elector is None or elector.is_leader

    writer = LeadersClient(client, leads) if elector else client
    groups, quotas = PodGroupStatusWriter(writer), QuotaStatusWriter(writer)
    jobs = TrainingJobOperator(writer)
    history = await _history(settings, writer, groups, leads)
    idle = IdleEvictions(writer, settings.idle) if settings.idle is not None else None
    moves = None
    if settings.rebalancing is not None:
        moves = Rebalancing(writer, settings.rebalancing, jobs.unplaced)

    async def write() -> None:
        async with asyncio.TaskGroup() as every:
            every.create_task(groups.run_writes())
            every.create_task(quotas.run_writes())
            every.create_task(jobs.run_writes())
            if history is not None:
                every.create_task(history.run_writes())
            if idle is not None:
                every.create_task(idle.run_writes())
            tidied = turned_off.tidy(writer) if moves is None else moves.run_writes()
            every.create_task(tidied)

    ready = asyncio.Event()
    secured = Secured(client, settings.certificate) if settings.secure else None

    def metrics() -> Iterator[Metric]:
        yield from of_this_process()
        yield from jobs.metrics()
        if history is not None:
            yield from history.metrics()
        if idle is not None:
            yield from idle.metrics()
        if moves is not None:
            yield from moves.metrics()

    app = application(ready.is_set, metrics)
    if history is not None:
        history.serve(app)
    else:
        without_history(app)
    async with Server(app, settings.host, settings.port, secured) as server:
        _log.info("serving health at %s/healthz", server.url)
        async with asyncio.TaskGroup() as group:
            group.create_task(groups.follow())
            group.create_task(quotas.follow())
            group.create_task(jobs.follow())
            if history is not None:
                group.create_task(history.follow())
            if idle is not None:
                group.create_task(idle.follow())
            await groups.synced()
            ready.set()
            address.url = published(server.url, os.environ)
            await (_take_turns(elector, write, jobs.begin_anew) if elector else write())


async def _history(
    settings: Settings, client: Client, groups: PodGroupStatusWriter, leads: Callable[[], bool]
) -> "HistoryKeeper | None":
    if settings.history is None:
        return None
    # The packages of databases are there only where a history is kept.
    from alnair.processes.controller.history.keeper import HistoryKeeper

    keeper = HistoryKeeper(client, settings.history, groups, secure=settings.secure, leads=leads)
    await keeper.open()
    return keeper


class _Address:
    """Where we serve, as the lease says: known once we do."""

    url = ""

    def annotations(self) -> dict[str, str]:
        return {names.METRICS_URL: self.url} if self.url else {}


def _elector(settings: Settings, client: Client, address: _Address) -> LeaderElector:
    return LeaderElector(
        client,
        namespace=names.NAMESPACE,
        name=names.CONTROLLER,
        identity=settings.identity,
        annotations=address.annotations,
        lease_duration=settings.lease_duration,
        renew_deadline=settings.renew_deadline,
        retry_period=settings.retry_period,
    )


async def _take_turns(
    elector: LeaderElector,
    write: Callable[[], Awaitable[None]],
    begin_anew: Callable[[], None],
) -> None:
    term = -1

    async def lead() -> None:
        nonlocal term
        # A lease that we failed to renew for a while, and nobody took: nobody else has written.
        if elector.transitions != term:
            begin_anew()
        term = elector.transitions
        await write()

    await elector.run_again_and_again(lead)

"""The scheduler process: stands by with full caches, and schedules while it leads."""

import asyncio
import contextlib
import gc
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from alnair.apps.scheduling.actuator import Actuator
from alnair.apps.scheduling.feed import Feed
from alnair.apps.scheduling.loop import Decisions, Loop
from alnair.apps.scheduling.metrics import exposition
from alnair.apps.scheduling.reporter import Reporter
from alnair.apps.scheduling.server import Server, application
from alnair.kube import config
from alnair.kube.client import Client
from alnair.kube.errors import LeadershipLost
from alnair.kube.lease import LeaderElector
from alnair.model import names
from alnair.scheduler.census import census
from alnair.scheduler.engine import Engine
from alnair.scheduler.profiles import profiles
from alnair.scheduler.tally import Tally

_log = logging.getLogger(__name__)

LEASE = "alnair-scheduler"
#: Seconds to write the events that are still to be written at the end.
_DRAIN = 30.0


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the process can be told.

    Durations are in seconds; a crashed leader is replaced within `lease_duration` + `retry_period`.
    """

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
    #: Chooses the permutation of nodes that breaks ties.
    seed: int = 0
    binders: int = 32


async def serve(settings: Settings) -> None:
    """Schedule until SIGTERM or SIGINT, then hand over."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    connection = config.load(settings.kubeconfig, settings.context)
    async with Client(connection, max_connections=settings.binders + 32) as client:
        work = asyncio.create_task(_Process(settings, client).run())
        ended = asyncio.create_task(stop.wait())
        await asyncio.wait((work, ended), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not work.done():
            work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


class _Process:
    def __init__(self, settings: Settings, client: Client) -> None:
        self._settings = settings
        self._client = client
        self._feed = Feed(client)
        self._calm = asyncio.Event()
        self._calm.set()
        self._reporter = Reporter(client, self._calm)
        self._decisions = Decisions()
        self._tally = Tally()
        #: None while this process does not lead.
        self._engine: Engine | None = None
        self._ready = False

    async def run(self) -> None:
        settings = self._settings
        app = application(self._decisions, lambda: self._ready, self._metrics)
        async with Server(app, settings.host, settings.port) as server:
            _log.info("serving health at %s/healthz", server.url)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._feed.run())
                    group.create_task(self._reporter.run())
                    await self._feed.synced()
                    # The caches live as long as the process: the collector need not walk them.
                    gc.collect()
                    gc.freeze()
                    self._ready = True
                    await self._take_turns(server.url)
            finally:
                await asyncio.shield(self._reporter.drain(_DRAIN))

    def _metrics(self) -> str:
        return exposition(self._tally, census(self._engine) if self._engine else None)

    async def _take_turns(self, url: str) -> None:
        settings = self._settings
        if not settings.leader_elect:
            await self._schedule(lambda: True)
            return
        elector = LeaderElector(
            self._client,
            namespace=names.NAMESPACE,
            name=LEASE,
            identity=settings.identity,
            annotations={names.METRICS_URL: url},
            lease_duration=settings.lease_duration,
            renew_deadline=settings.renew_deadline,
            retry_period=settings.retry_period,
        )

        async def lead() -> None:
            await self._schedule(lambda: elector.is_leader)

        while True:
            try:
                await elector.run(lead)
            except LeadershipLost as error:
                _log.warning("%s; standing by", error)

    async def _schedule(self, may_act: Callable[[], bool]) -> None:
        # A new term starts from what the cluster says, not from what this process once intended.
        engine = Engine(
            profiles(), seed=self._settings.seed, timer=time.perf_counter, tally=self._tally
        )
        actuator = Actuator(
            self._client,
            self._feed,
            self._reporter,
            may_act,
            self._calm,
            self._settings.binders,
            self._tally,
        )
        self._engine = engine
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(actuator.run())
                group.create_task(Loop(engine, self._feed, actuator, self._decisions).run())
        finally:
            self._engine = None

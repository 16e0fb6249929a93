"""The scheduler process: stands by with full caches, and schedules while it leads."""

import asyncio
import gc
import logging
import os
import platform
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client.metrics_core import Metric

from alnair.configuration.profile_assembly import Assembly
from alnair.configuration.scheduler_file import Configuration, seconds
from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.lease import LeaderElector
from alnair.live.engine_feed import Feed
from alnair.model import names
from alnair.processes.scheduler.actuator import Actuator
from alnair.processes.scheduler.dry_run import DryRunActuator
from alnair.processes.scheduler.endpoints import NotLeadingError, application
from alnair.processes.scheduler.loop import Decisions, Loop
from alnair.processes.scheduler.metrics import metrics
from alnair.processes.scheduler.reporter import Reporter
from alnair.scheduler.advice.census import census
from alnair.scheduler.advice.diagnose import diagnose, find
from alnair.scheduler.advice.diagnosis import Diagnosis
from alnair.scheduler.advice.unserved import unserved
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.metric_counters import SchedulerCounters
from alnair.serving.lifecycle import run_until_stopped
from alnair.serving.published_address import published
from alnair.serving.server import Secured, Server
from alnair.serving.tls import CertificateFiles
from alnair.snapshots.snapshot import Snapshot, take

_log = logging.getLogger(__name__)

#: Seconds to write the events that are still to be written at the end.
_DRAIN = 30.0


async def serve(configuration: Configuration, assembly: Assembly, cluster: Connection) -> None:
    """Schedule until SIGTERM or SIGINT, then hand over.

    Args:
        configuration: What the process was told.
        assembly: Makes its profiles, anew for each term of leading.
        cluster: Whose pods.
    """
    await run_until_stopped(_run(configuration, assembly, cluster))


async def _run(configuration: Configuration, assembly: Assembly, cluster: Connection) -> None:
    _log.info("the cluster is %s, by %s", cluster.server, cluster.source)
    bindings = configuration.client_connection.bindings
    async with Client(cluster, max_connections=bindings + 32) as client:
        await _Process(configuration, assembly, client).run()


class _Process:
    def __init__(
        self,
        configuration: Configuration,
        assembly: Assembly,
        client: Client,
    ) -> None:
        self._configuration = configuration
        self._assembly = assembly
        self._client = client
        self._feed = Feed(client, {kind for p in assembly.profiles() for kind in p.kinds()})
        self._calm = asyncio.Event()
        self._calm.set()
        self._reporter = Reporter(client, self._calm)
        self._decisions = Decisions()
        self._counters = SchedulerCounters()
        #: None while this process does not lead.
        self._engine: Engine | None = None
        self._ready = False

    async def run(self) -> None:
        serving = self._configuration.serving
        app = application(
            self._decisions, lambda: self._ready, self._metrics, self._snapshot, self._explain
        )
        secured = None
        if serving.secure:
            files = None
            if serving.tls_cert_file:
                key = serving.tls_private_key_file
                files = CertificateFiles(Path(serving.tls_cert_file), Path(key))
            secured = Secured(self._client, files)
        async with Server(app, serving.host, serving.port, secured) as server:
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
                    await self._take_turns(published(server.url, os.environ))
            finally:
                await asyncio.shield(self._reporter.drain(_DRAIN))

    def _metrics(self) -> Iterable[Metric]:
        lease = self._configuration.leader_election.resource_name
        return metrics(self._counters, census(self._engine.view) if self._engine else None, lease)

    def _snapshot(self) -> Snapshot | None:
        if self._engine is None:
            return None
        seed = self._configuration.seed
        return take(self._engine.view, self._assembly.explicit(), seed, time.time())

    def _explain(self, namespace: str, name: str) -> Diagnosis | None:
        engine = self._engine
        if engine is None:
            raise NotLeadingError
        if record := find(engine.view, namespace, name):
            return diagnose(engine.view, record, time.time())
        # Of pods that name another scheduler and hold nothing, the engine knows nothing.
        pod = self._feed.named(namespace, name)
        if pod is None or pod.finished or pod.scheduler in engine.view.profiles:
            return None
        return unserved(pod, engine.view.profiles)

    async def _take_turns(self, url: str) -> None:
        election = self._configuration.leader_election
        if self._configuration.dry_run or not election.leader_elect:  # a lease is a write, too
            await self._schedule(lambda: True)
            return
        elector = LeaderElector(
            self._client,
            namespace=election.resource_namespace,
            name=election.resource_name,
            identity=election.identity or f"{platform.node()}_{uuid.uuid4()}",
            annotations={names.METRICS_URL: url},
            lease_duration=int(seconds(election.lease_duration)),
            renew_deadline=seconds(election.renew_deadline),
            retry_period=seconds(election.retry_period),
        )

        async def lead() -> None:
            await self._schedule(lambda: elector.is_leader)

        await elector.run_again_and_again(lead)

    async def _schedule(self, may_act: Callable[[], bool]) -> None:
        # A new term starts from what the cluster says, not from what this process once intended.
        backfill = self._configuration.backfill
        engine = Engine(
            self._assembly.profiles(),
            seed=self._configuration.seed,
            patience=seconds(backfill.patience) if backfill.enabled else None,
            timer=time.perf_counter,
            counters=self._counters,
        )
        actuator: Actuator | DryRunActuator
        if self._configuration.dry_run:
            _log.info("dry-run: nothing is written to the API server")
            actuator = DryRunActuator(self._feed)
        else:
            actuator = Actuator(
                self._client,
                self._feed,
                self._reporter,
                may_act,
                self._calm,
                self._configuration.client_connection.bindings,
                self._counters,
                engine.has_crossed,
            )
        self._engine = engine
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(actuator.run())
                group.create_task(Loop(engine, self._feed, actuator, self._decisions).run())
        finally:
            self._engine = None

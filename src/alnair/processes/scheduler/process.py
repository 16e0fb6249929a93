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

from alnair.configuration.scheduler_file import DEFAULT_SCHEDULER, Configuration, seconds
from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.events import EventKind, ObjectReference
from alnair.kube.lease import LeaderElector
from alnair.kube.resources import LEASES
from alnair.live.engine_feed import Feed
from alnair.model import names
from alnair.processes.scheduler.actuator import Actuator
from alnair.processes.scheduler.configuration_file import ConfigurationFile, Loaded, Source
from alnair.processes.scheduler.dry_run import DryRunActuator
from alnair.processes.scheduler.endpoints import NotLeadingError, application
from alnair.processes.scheduler.loop import Decisions, Loop
from alnair.processes.scheduler.metrics import metrics, of_configuration
from alnair.processes.scheduler.published_holdings import PublishedHoldings
from alnair.processes.scheduler.published_learning import PublishedLearning, read
from alnair.processes.scheduler.reporter import Reporter
from alnair.processes.scheduler.standby import Standby
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

#: Of docs/decisions/0009: who takes kube-scheduler's place shall know.
_LACKS = (
    "pods of default-scheduler are ours, too: kube-scheduler shall not run beside us. Not here:"
    " dynamic resource allocation (pods with resourceClaims are refused), extenders, plugins in Go,"
    " and default spreading unless a profile asks for it"
)
#: Seconds to write the events that are still to be written at the end.
_DRAIN = 30.0
#: Objects after which the collector looks for cycles. Each pod leaves thousands behind and hardly a
#: cycle: at Python's 700 looking took 6 % of the CPU.
_GARBAGE = 20_000


async def serve(loaded: Loaded, source: Source, cluster: Connection) -> None:
    """Schedule until SIGTERM or SIGINT, then hand over.

    Args:
        loaded: What the process was told; makes its profiles, anew for each term of leading.
        source: Where that is read again when it changes.
        cluster: Whose pods.
    """
    await run_until_stopped(_run(loaded, source, cluster))


async def _run(loaded: Loaded, source: Source, cluster: Connection) -> None:
    _log.info("the cluster is %s, by %s", cluster.server, cluster.source)
    gc.set_threshold(_GARBAGE)
    bindings = loaded.configuration.client_connection.bindings
    async with Client(cluster, max_connections=bindings + 32) as client:
        await _Process(loaded, source, client).run()


class _Process:
    def __init__(self, loaded: Loaded, source: Source, client: Client) -> None:
        self._file = ConfigurationFile(source, loaded, self._tell)
        self._client = client
        self._feed = Feed(client, _kinds(loaded))
        self._calm = asyncio.Event()
        self._calm.set()
        self._reporter = Reporter(client, self._calm)
        self._decisions = Decisions()
        self._holdings = PublishedHoldings()
        self._learning = PublishedLearning()
        self._counters = SchedulerCounters()
        #: None while this process does not lead.
        self._loop: Loop | None = None
        self._standby = Standby(self._new_loop, self._file.changed)
        self._ready = False
        if any(one.scheduler == DEFAULT_SCHEDULER for one in loaded.assembly.profiles()):
            _log.warning(_LACKS)

    @property
    def _engine(self) -> Engine | None:
        """The engine that decides; None while this process does not lead."""
        return self._loop.engine if self._loop else None

    @property
    def _configuration(self) -> Configuration:
        return self._file.in_force.configuration

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
            async with asyncio.TaskGroup() as group:
                group.create_task(self._feed.run())
                telling = group.create_task(self._reporter.run())
                group.create_task(self._file.run())
                try:
                    await self._feed.synced()
                    # The caches live as long as the process: the collector need not walk them. Not
                    # once now either: the first decision would wait for it.
                    gc.freeze()
                    await self._standby.prepare()
                    self._ready = True
                    await self._take_turns(published(server.url, os.environ))
                finally:
                    # In the group, which then cancels who writes.
                    await self._reporter.drain(_DRAIN, telling)

    def _metrics(self) -> Iterable[Metric]:
        lease = self._configuration.leader_election.resource_name
        state = census(self._engine.view) if self._engine else None
        yield from metrics(self._counters, state, lease)
        yield from of_configuration(self._file.results, self._file.problem, self._file.since)

    def _tell(self, reason: str, message: str, kind: EventKind) -> None:
        """Tell people of this process: by its pod, or the lease where it is none."""
        if self._configuration.dry_run:
            return
        pod = self._feed.named(names.NAMESPACE, os.environ.get("POD_NAME", ""))
        lease = self._configuration.leader_election
        about = (
            ObjectReference("Pod", pod.name, pod.namespace, pod.uid)
            if pod is not None
            else ObjectReference(
                LEASES.kind,
                lease.resource_name,
                lease.resource_namespace,
                api_version=LEASES.api_version,
            )
        )
        self._reporter.tell(about, reason, message, kind)

    def _snapshot(self) -> Snapshot | None:
        if self._engine is None:
            return None
        seed = self._configuration.seed
        explicit = self._file.in_force.assembly.explicit()
        return take(self._engine.view, explicit, seed, time.time())

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
            await self._schedule(lambda: True, lambda: "")
            return
        elector = LeaderElector(
            self._client,
            namespace=election.resource_namespace,
            name=election.resource_name,
            identity=election.identity or f"{platform.node()}_{uuid.uuid4()}",
            annotations=lambda: {names.METRICS_URL: url, **self._annotations()},
            lease_duration=int(seconds(election.lease_duration)),
            renew_deadline=seconds(election.renew_deadline),
            retry_period=seconds(election.retry_period),
        )

        async def lead() -> None:
            await self._schedule(
                lambda: elector.is_leader, lambda: elector.annotations.get(names.LEARNED, "")
            )

        await elector.run_again_and_again(lead, self._standby.run)

    def _annotations(self) -> dict[str, str]:
        """Return what the lease says of this term; what was learned before stays if nothing was."""
        engine = self._engine if self._loop and self._loop.decides else None
        learned = self._learning.text(engine, time.monotonic())
        return {
            names.HOLDINGS: self._holdings.text(self._engine),
            **({names.LEARNED: learned} if learned else {}),
        }

    async def _schedule(self, may_act: Callable[[], bool], learned: Callable[[], str]) -> None:
        while True:
            loop = await self._standby.take()
            just_now = self._learning.text(None, time.monotonic())
            await self._term(loop, may_act, just_now or learned())

    async def _new_loop(self) -> Loop:
        """Return one that knows nothing yet, by the configuration in force.

        It starts from what the cluster says, not from what this process once intended.
        """
        loaded = self._file.in_force
        await self._feed.follow(_kinds(loaded))
        backfill = loaded.configuration.backfill
        engine = Engine(
            loaded.assembly.profiles(),
            seed=loaded.configuration.seed,
            patience=seconds(backfill.patience) if backfill.enabled else None,
            timer=time.perf_counter,
            counters=self._counters,
        )
        return Loop(engine, self._feed, self._decisions)

    async def _term(self, loop: Loop, leads: Callable[[], bool], learned: str) -> None:
        """Schedule until the configuration changes.

        What plugins have learned comes from the lease; all else from the cluster.
        """
        is_over = False

        def may_act() -> bool:
            return leads() and not is_over

        engine = loop.engine
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
        states = read(learned, engine.view.profiles.values())
        self._loop = loop
        try:
            async with asyncio.TaskGroup() as group:
                acting = group.create_task(actuator.run())
                deciding = group.create_task(loop.run(actuator, states))
                await self._file.changed.wait()
                # First nothing more is decided, then what is under way comes to its end.
                deciding.cancel()
                await actuator.settled()
                is_over = True
                acting.cancel()
        finally:
            if loop.decides:
                self._learning.end(engine, time.monotonic())
            self._loop = None


def _kinds(loaded: Loaded) -> set[str]:
    """Return the kinds of objects that profiles read whatever a pod asks for."""
    return {kind for profile in loaded.assembly.profiles() for kind in profile.kinds()}

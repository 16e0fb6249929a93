"""All that the controller does for the history, behind one door."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator

from aiohttp import web
from prometheus_client.metrics_core import Metric

from alnair.history.database import writing
from alnair.kube.client import Client
from alnair.kube.errors import Forbidden, KubeError
from alnair.kube.resources import NAMESPACES
from alnair.processes.controller.history.job_findings import EVERY, JobFindings
from alnair.processes.controller.history.outboxes import Outboxes
from alnair.processes.controller.history.owner_annotations import OwnerAnnotations
from alnair.processes.controller.history.pages import add_history
from alnair.processes.controller.history.seen import Agent
from alnair.processes.controller.history.settings import HistorySettings
from alnair.processes.controller.history.store import Store
from alnair.processes.controller.history.writer import LifeWriter
from alnair.processes.controller.pod_groups import PodGroupStatusWriter

_log = logging.getLogger(__name__)


class HistoryKeeper:
    """Keeps the history of a cluster.

    Args:
        client: An open client.
        settings: Where it is.
        groups: Knows the PodGroups.
        secure: Whether agents that are pods speak TLS.
        leads: Whether we may write at this very moment.
    """

    def __init__(
        self,
        client: Client,
        settings: HistorySettings,
        groups: PodGroupStatusWriter,
        *,
        secure: bool,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client = client
        self._settings = settings
        self._store = Store(settings.url, leads)
        self._lives = LifeWriter(client, self._store, groups.reference, groups.least)
        self._findings = JobFindings(
            client,
            self._store,
            lambda: self._lives.pods.items,
            self._lives.job_of,
            every=min(EVERY, settings.period),
        )
        self._outboxes = Outboxes(
            self._store,
            self._agents,
            urls=settings.outboxes,
            secure=secure,
            token=settings.token,
            period=settings.period,
            running=self._findings.heard,
        )
        self._owners = None
        if settings.annotate:
            self._owners = OwnerAnnotations(client, self._store, settings.annotate)

    async def open(self) -> None:
        """Open the history, and migrate it.

        Raises:
            HistoryError: Its address is wrong.
        """
        await self._store.open_patiently()

    def serve(self, app: web.Application) -> None:
        """Serve the history on these pages."""
        add_history(app, self._store)

    def metrics(self) -> Iterator[Metric]:
        """Return what jobs do, as far as is known to who leads."""
        return self._findings.metrics()

    async def follow(self) -> None:
        """Follow the cluster until cancelled."""
        await self._lives.follow()

    async def run_writes(self) -> None:
        """Write until cancelled, once the history is known to be of this cluster."""
        await self._take_over()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lives.run_writes())
            group.create_task(self._outboxes.run())
            group.create_task(self._findings.run())
            group.create_task(self._store.clean(self._settings.keep))
            if self._owners is not None:
                group.create_task(self._owners.run())

    async def _take_over(self) -> None:
        cluster = await self._cluster()
        await self._store.carry_out(
            lambda connection: writing.take_over(connection, cluster, time.time())
        )

    async def _cluster(self) -> str | None:
        """Return the uid by which clusters are told apart; None if it may not be read."""
        while True:
            try:
                found = await self._client.get(NAMESPACES, "kube-system")
            except Forbidden as error:
                _log.warning("nobody can tell whether the history is of this cluster: %s", error)
                return None
            except KubeError as error:
                _log.warning("the history waits for the API server: %s", error)
                await asyncio.sleep(1.0)
            else:
                return str(found["metadata"]["uid"])

    def _agents(self) -> list[Agent]:
        return [pod.agent for pod in self._lives.pods.items.values() if pod.agent is not None]

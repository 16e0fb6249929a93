"""All that the controller does for the history, behind one door."""

import asyncio

from aiohttp import web

from alnair.kube.client import Client
from alnair.processes.controller.history.outboxes import Outboxes
from alnair.processes.controller.history.owner_annotations import OwnerAnnotations
from alnair.processes.controller.history.pages import add_history
from alnair.processes.controller.history.seen import Agent
from alnair.processes.controller.history.settings import HistorySettings
from alnair.processes.controller.history.store import Store
from alnair.processes.controller.history.writer import GroupOf, LifeWriter


class HistoryKeeper:
    """Keeps the history of a cluster.

    Args:
        client: An open client.
        settings: Where it is.
        group_of: Finds the PodGroup of a namespace and name.
        secure: Whether agents that are pods speak TLS.
    """

    def __init__(
        self, client: Client, settings: HistorySettings, group_of: GroupOf, *, secure: bool
    ) -> None:
        self._settings = settings
        self._store = Store(settings.url)
        self._lives = LifeWriter(client, self._store, group_of)
        self._outboxes = Outboxes(
            self._store,
            self._agents,
            urls=settings.outboxes,
            secure=secure,
            token=settings.token,
            period=settings.period,
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

    async def follow(self) -> None:
        """Follow the cluster until cancelled."""
        await self._lives.follow()

    async def run_writes(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lives.run_writes())
            group.create_task(self._outboxes.run())
            group.create_task(self._store.clean(self._settings.keep))
            if self._owners is not None:
                group.create_task(self._owners.run())

    def _agents(self) -> list[Agent]:
        return [pod.agent for pod in self._lives.pods.items.values() if pod.agent is not None]

"""Keeps the history of a cluster whose controller keeps none, from outside, by reading alone.

It is the controller's own writer, into the same tables. What agents measured is asked of them
through the API server; what ended between two questions is known up to the one before.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from sqlalchemy import Connection

from alnair.history.database import writing
from alnair.history.database.rows import Changes
from alnair.kube.client import Client
from alnair.kube.resources import NAMESPACES
from alnair.live.recording.decisions import decided
from alnair.live.usage.agents import Agents
from alnair.processes.controller.history.store import Store
from alnair.processes.controller.history.writer import LifeWriter
from alnair.processes.controller.pod_groups import PodGroupStatusWriter

_log = logging.getLogger(__name__)

#: Seconds between questions to agents and to the scheduler.
_ASK: Final = 10.0
#: Seconds for which an end waits until all is written.
_LAST: Final = 10.0


async def record(
    client: Client,
    name: str,
    stop: Callable[[], Awaitable[object]],
    tell: Callable[[int, int], None],
) -> None:
    """Write all that happens in a cluster into a history, until `stop` returns.

    Args:
        client: An open client.
        name: URL or path of the history, which goes on where it ended.
        stop: Awaited; what was seen until then is written.
        tell: Called with the numbers of nodes and pods once all are read.

    Raises:
        HistoryError: It cannot be written, or is of another cluster.
        KubeError: The cluster cannot be read.
    """
    cluster = (await client.get(NAMESPACES, "kube-system"))["metadata"]["uid"]

    def take_over(connection: Connection) -> None:
        writing.take_over(connection, cluster, time.time())

    store = Store(name)
    try:
        await store.once(take_over)
        await _follow(client, store, stop, tell)
    finally:
        store.close()


async def _follow(
    client: Client,
    store: Store,
    stop: Callable[[], Awaitable[object]],
    tell: Callable[[int, int], None],
) -> None:
    # Of its statuses none is written, as `run_writes` does not run.
    groups = PodGroupStatusWriter(client)
    lives = LifeWriter(client, store, groups.reference, groups.least)
    async with asyncio.TaskGroup() as group:
        work = (groups.follow(), lives.follow(), _write(client, store, groups, lives, tell))
        running = [group.create_task(one) for one in work]
        await stop()
        # Of a history that is away, what was seen last is lost.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST):
                await lives.settled()
        for task in running:
            task.cancel()


async def _write(
    client: Client,
    store: Store,
    groups: PodGroupStatusWriter,
    lives: LifeWriter,
    tell: Callable[[int, int], None],
) -> None:
    await groups.synced()
    await lives.nodes.synced.wait()
    await lives.pods.synced.wait()
    tell(len(lives.nodes.items), len(lives.pods.items))
    async with asyncio.TaskGroup() as group:
        group.create_task(lives.run_writes())
        group.create_task(_ask(client, store))


async def _ask(client: Client, store: Store) -> None:
    agents = Agents(client)
    told = ""
    while True:
        counted = await decided(client)
        usages, problems = await agents.ask()
        if problems and problems[0] != told:
            told = problems[0]
            _log.warning("what pods use is not known: %s", told)
        changes = Changes(usages=list(usages.values()), decided=counted)
        if changes.usages or counted is not None:
            await store.write(changes)
        await asyncio.sleep(_ASK)

"""An agent that waits for the one before it: ready at once, when that has ended.

So an upgrade replaces an agent as it replaces a scheduler: the new one is there before the old one
is told to go. It tells the cluster nothing meanwhile, and asks it only who may read.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web

from alnair.node.vgpu.folder_lock import FolderLock
from alnair.processes.agent.cluster_client import opened
from alnair.processes.agent.settings import Settings
from alnair.serving.health import add_health
from alnair.serving.server import Secured, Server

#: Seconds between tries to take the lock: the kubelet refuses pods meanwhile.
EVERY: Final = 0.005

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def standing_by(settings: Settings, lock: FolderLock) -> AsyncIterator[None]:
    """Wait for the lock; health is served until the block ends.

    Args:
        settings: The agent's.
        lock: On its folder, which another holds.

    Raises:
        ServeError: The address of the metrics is taken.
    """
    async with contextlib.AsyncExitStack() as stack:
        client = await opened(settings, stack)
        app = web.Application()
        add_health(app)
        secured = Secured(client, settings.certificate) if settings.secure and client else None
        await stack.enter_async_context(Server(app, settings.host, settings.port, secured))
        _log.info("another agent serves %s: standing by until it has ended", settings.folder)
        while not lock.take():  # noqa: ASYNC110 (another process has it)
            await asyncio.sleep(EVERY)
        yield

"""How the agent's process begins: it serves the kubelet, and only then imports the rest.

This module and what it imports are what the kubelet waits for.
"""

import asyncio
import contextlib
import logging
from typing import Any, Final

from alnair.node.vgpu.folder_lock import FolderLock
from alnair.processes.agent.device_plugin.early import EarlyPlugins
from alnair.processes.agent.memory import keep_little
from alnair.processes.agent.settings import Settings
from alnair.serving.lifecycle import run_until_stopped

#: Seconds for which the kubelet comes first.
_FIRST: Final = 1.0

_log = logging.getLogger(__name__)


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; the containers go on by what their pages say.

    Raises:
        Exception: One of `expected_errors`.
    """
    keep_little()
    await run_until_stopped(_serve(settings))
    _log.info("stopped; containers keep their limits")


def expected_errors() -> tuple[type[Exception], ...]:
    """Return what `serve` raises that is no bug."""
    from alnair.kube.errors import KubeError
    from alnair.node.usage_outbox import OutboxError
    from alnair.node.vgpu.containers.journal import JournalError
    from alnair.node.vgpu.installed_library import InstallError
    from alnair.serving.server import ServeError

    return KubeError, ServeError, JournalError, InstallError, OutboxError, OSError


async def _serve(settings: Settings) -> None:
    lock, early = FolderLock(settings.folder), None
    try:
        async with contextlib.AsyncExitStack() as until_registered:
            if not lock.take():
                if not settings.stands_by:
                    raise OSError(lock.in_use)
                # All that takes time is done while the other still serves.
                await asyncio.to_thread(_the_rest)
                from alnair.processes.agent.standing_by import standing_by

                await until_registered.enter_async_context(standing_by(settings, lock))
            if settings.plugin is not None:
                # Only now: what it begins with is what the one before it told last.
                early = EarlyPlugins(settings.plugin, settings.folder)
                if early.may_begin:
                    early.begin()
                    await early.registered(_FIRST)
        # In a thread: the kubelet asks meanwhile.
        process = await asyncio.to_thread(_the_rest)
        async with process.agent(settings, early, lock) as url:
            # Scripts and tests wait for this line.
            print(f"ready: folder {settings.folder}, metrics {url}/metrics", flush=True)
            await asyncio.Event().wait()
    finally:
        # The kubelet first: the next agent, which waits for the lock, is to come after its end.
        if early is not None:
            await early.end()
        lock.release()


def _the_rest() -> Any:
    from alnair.processes.agent import process

    return process

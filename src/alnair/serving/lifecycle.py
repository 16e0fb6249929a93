"""The life of a process: it works until it is asked to stop, or its work ends, and cleans up."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any


async def run_until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Work until SIGTERM or SIGINT, then cancel the work and wait until it has cleaned up.

    Raises:
        Exception: What the work raised.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    working = asyncio.create_task(work)
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        if not working.done():
            working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working

"""Calls that may never come back, in threads that nobody waits for.

`asyncio.to_thread` would do, but the end of a process waits for its threads; one that hangs in a
driver would keep it from ending.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def in_own_thread(work: Callable[..., T], *arguments: Any) -> "asyncio.Future[T]":
    """Do it in a thread of its own; the end of the process does not wait for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: list[T], error: BaseException | None) -> None:
        if error is not None and not done.cancelled():
            done.set_exception(error)
        elif not done.cancelled():
            done.set_result(result[0])

    def run() -> None:
        result: list[T] = []
        failure = None
        try:
            result.append(work(*arguments))
        except BaseException as error:  # noqa: BLE001 (whoever waits gets it)
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="own-thread", daemon=True).start()
    return done

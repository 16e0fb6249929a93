"""Calls that may never come back, in threads that nobody waits for.

`asyncio.to_thread` would do, but the end of a process waits for its threads; one that hangs in a
driver would keep it from ending. A thread whose call came back does the next one: to start a thread
is to wait until it runs, which holds up the event loop where the machine is busy.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")
_Work = Callable[[], None]

#: Threads that wait for work at most: more end when theirs is done.
_MOST_IDLE: Final = 4
#: Where those that wait are told what to do.
_idle: list[SimpleQueue[_Work]] = []


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

    try:
        _idle.pop().put(run)
    except IndexError:
        threading.Thread(target=_serve, args=(run,), daemon=True).start()
    return done


def _serve(work: _Work) -> None:
    """Work, and wait for more."""
    told: SimpleQueue[_Work] = SimpleQueue()
    thread = threading.current_thread()
    while True:
        thread.name = "own-thread"
        work()
        del work  # and with it what was found
        if len(_idle) >= _MOST_IDLE:
            return
        _idle.append(told)
        thread.name = "own-thread, idle"
        work = told.get()

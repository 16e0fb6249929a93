"""Time that passes when a test says so, for what waits long before it tries again."""

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = itertools.count()
        self._calls: list[tuple[float, int, Callable[[], Any]]] = []
        self.parked = asyncio.Event()

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> None:
        call = (self.now + delay, next(self._order), lambda: callback(*args))
        heapq.heappush(self._calls, call)
        self.parked.set()

    async def until_next(self) -> None:
        """Wait until something waits for its time, and let the time come."""
        async with asyncio.timeout(30):
            while not self._calls:
                self.parked.clear()
                await self.parked.wait()
        self.now, _, call = heapq.heappop(self._calls)
        call()


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do something beside the test until the end of the block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

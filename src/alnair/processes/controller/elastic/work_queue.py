"""Keys that are to be looked at: each once however often it is named, and by one at a time."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from alnair.processes.controller.elastic.children import JobKey


class WorkQueue:
    """A queue of keys.

    A key that is added while somebody works on it is handed out again afterwards.

    Args:
        is_first: Says whether a key goes before others: asked when it is offered.
    """

    def __init__(self, is_first: Callable[[JobKey], bool] = lambda _: False) -> None:
        self._is_first = is_first
        self._first: deque[JobKey] = deque()
        self._waiting: deque[JobKey] = deque()
        #: When each that waits was added.
        self._since: dict[JobKey, float] = {}
        self._busy: set[JobKey] = set()
        self._timers: dict[JobKey, asyncio.TimerHandle] = {}
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._since)

    def add(self, key: JobKey) -> None:
        """Have the key looked at as soon as may be."""
        if key in self._since:
            return
        self._since[key] = time.monotonic()
        if key not in self._busy:
            self._offer(key)

    def add_at(self, key: JobKey, seconds: float) -> None:
        """Have the key looked at after so many seconds; the last word counts."""
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(max(0.0, seconds), self._due, key)

    async def take(self) -> tuple[JobKey, float]:
        """Wait for a key, and return it with when it was added, by the monotonic clock."""
        while not (self._first or self._waiting):
            self._some.clear()
            await self._some.wait()
        key = (self._first or self._waiting).popleft()
        self._busy.add(key)
        return key, self._since.pop(key)

    def done(self, key: JobKey, rest: float = 0.0) -> None:
        """Note that nobody works on the key, which rests so many seconds before the next time."""
        if rest <= 0:
            self._busy.discard(key)
            if key in self._since:
                self._offer(key)
            return
        asyncio.get_running_loop().call_later(rest, self.done, key)

    def close(self) -> None:
        """Forget all that is to be looked at later."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _offer(self, key: JobKey) -> None:
        (self._first if self._is_first(key) else self._waiting).append(key)
        self._some.set()

    def _due(self, key: JobKey) -> None:
        self._timers.pop(key, None)
        self.add(key)

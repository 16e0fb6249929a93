"""What is done between two terms: the loop of the next one is made, and follows the cluster."""

import asyncio
from collections.abc import Awaitable, Callable

from alnair.processes.scheduler.loop import Loop


class Standby:
    """Has the loop of the term to come.

    Args:
        make: returns a loop that knows nothing yet, by the configuration in force.
        changed: set when decisions shall go by another configuration.
    """

    def __init__(self, make: Callable[[], Awaitable[Loop]], changed: asyncio.Event) -> None:
        self._make = make
        self._changed = changed
        self._loop: Loop | None = None

    async def prepare(self) -> None:
        """Take in all that there is, before anybody is elected."""
        await (await self._current()).take_in()

    async def run(self) -> None:
        """Keep the loop as the cluster is, until cancelled."""
        while True:
            loop = await self._current()
            async with asyncio.TaskGroup() as group:
                learning = group.create_task(loop.stand_by())
                await self._changed.wait()
                learning.cancel()

    async def take(self) -> Loop:
        """Return the loop for a term that begins now; the next term has another."""
        loop = await self._current()
        self._loop = None
        return loop

    async def _current(self) -> Loop:
        if self._loop is None or self._changed.is_set():
            # Whoever is cancelled meanwhile leaves none that goes by the configuration before.
            self._loop = None
            self._changed.clear()
            self._loop = await self._make()
        return self._loop

"""Pods that have ended, until none of their processes is left.

A pod that is deleted by force is gone from the API server while its containers still run. Until
they have ended, nobody else gets what they hold.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from alnair.node.cgroups import Proc

#: Seconds between looks while there is something to look for.
_EVERY: Final = 0.5


class LeavingPods:
    """Waits for the last process of pods.

    Args:
        proc: This machine's.
        gone: Called with the uid of a pod that has none any more.
    """

    def __init__(self, proc: Proc, gone: Callable[[str], None]) -> None:
        self._proc = proc
        self._gone = gone
        self._uids: set[str] = set()
        self._news = asyncio.Event()

    def add(self, uids: Iterable[str]) -> None:
        """Wait for these, too."""
        self._uids.update(uids)
        self._news.set()

    async def run(self) -> None:
        """Look, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._uids:
                asked = frozenset(self._uids)
                alive = await asyncio.to_thread(self._proc.pods)
                for uid in asked - alive:
                    self._uids.discard(uid)
                    self._gone(uid)
                if self._uids:
                    await asyncio.sleep(_EVERY)

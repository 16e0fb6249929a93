"""Asking one GPU after the other, so that one that never answers holds up no other.

All are asked in one thread, which is cheap. If a call hangs in it, the thread is left to it, and
another one goes on with the rest. As long as a call hangs that GPU is asked nothing more: there are
never more threads left behind than GPUs.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from alnair.node.own_thread import in_own_thread

#: Seconds that a GPU is waited for before the others are asked.
BUDGET: Final = 0.5
#: They are counted in so many parts, each of which the thread has, too: so a GPU is not taken for
#: one that hangs where it is this process that stood still.
_PARTS: Final = 5

T = TypeVar("T")


class Rounds(Generic[T]):
    """Asks.

    Args:
        ask: Asks a GPU; it may never return.

    Attributes:
        hanging: GPUs whose call has not returned, and since when, in seconds, monotonic.
    """

    def __init__(self, ask: Callable[[str], T]) -> None:
        self.hanging: dict[str, float] = {}
        self._ask = ask

    async def all(self, uuids: Iterable[str]) -> dict[str, T]:
        """Return the answers; a GPU that hangs, now or from before, has none."""
        answers: dict[str, T] = {}
        left = [uuid for uuid in uuids if uuid not in self.hanging]
        while left:
            walk = _Walk(self._ask, left, self.hanging)
            walked = in_own_thread(walk.run)
            while not walked.done():
                await asyncio.wait({walked}, timeout=BUDGET / _PARTS)
                if not walked.done() and walk.leave():
                    break
            else:
                walked.result()  # a mistake of ours is not swallowed
            answers |= walk.answers
            left = left[walk.at + 1 :]
        return answers


class _Walk(Generic[T]):
    """One thread's way along the GPUs.

    Attributes:
        at: Number of the GPU that is asked, or was asked last.
        answers: Of those before.
    """

    def __init__(
        self, ask: Callable[[str], T], uuids: list[str], hanging: dict[str, float]
    ) -> None:
        self.at = 0
        self.answers: dict[str, T] = {}
        self._ask = ask
        self._uuids = uuids
        self._hanging = hanging
        self._since = time.monotonic()
        self._waited = 0
        self._is_left = False
        self._lock = threading.Lock()

    def run(self) -> None:
        """Ask them all, unless left meanwhile."""
        for at, uuid in enumerate(self._uuids):
            with self._lock:
                self.at, self._since, self._waited = at, time.monotonic(), 0
            try:
                answer = self._ask(uuid)
            except BaseException:
                with self._lock:
                    self._hanging.pop(uuid, None)
                raise
            with self._lock:
                if self._is_left:
                    del self._hanging[uuid]
                    return
                self.answers[uuid] = answer

    def leave(self) -> bool:
        """Leave it to the GPU that it is asking, if that has had its time: one part more now."""
        with self._lock:
            uuid = self._uuids[self.at]
            self._waited += 1
            if uuid in self.answers or self._waited < _PARTS:
                return False
            self._is_left = True
            self._hanging[uuid] = self._since
            return True

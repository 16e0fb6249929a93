"""What pods used, on its way to the disk and from there to who asks.

The folder is written in threads, one at a time. A pod that has ended is told to others only when
the books of the running ones no longer have it: so nobody hears of it twice, whatever ends the
process between two writes.
"""

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from alnair.model.usage import PodUsage
from alnair.model.usage_feed import MOST_ENDED, EndedPod, UsagePage
from alnair.node.usage_outbox import UsageOutbox
from alnair.profiler.pods.accounts import SavedAccounts

#: Ended pods that wait in memory while the folder cannot be written.
_MOST_WAITING: Final = 1000

_log = logging.getLogger(__name__)


class WrongStreamError(Exception):
    """Somebody means another folder; says which this is."""


class KeptUsage:
    """The outbox, for the event loop.

    Args:
        folder: Of the outbox.

    Raises:
        OutboxError: It cannot be used.

    Attributes:
        problem: Why the last write failed, or "".
    """

    def __init__(self, folder: Path) -> None:
        self._box = UsageOutbox(folder, lambda: secrets.token_hex(8), time.time)
        self._lock = asyncio.Lock()
        #: Held by the thread that writes: who was cancelled does not wait for it any more.
        self._writing = threading.Lock()
        self._is_last = False
        self._waiting: list[PodUsage] = []
        self.problem = ""

    @property
    def waiting(self) -> int:
        """Ended pods that nobody has kept yet."""
        return len(self._box) + len(self._waiting)

    @property
    def dropped(self) -> int:
        """Ended pods that were thrown away."""
        return self._box.dropped

    def saved(self) -> tuple[SavedAccounts | None, set[str]]:
        """Return the books of an agent before this one, and pods whose end is in the outbox."""
        data = self._box.running()
        if data is None:
            return None, set()
        try:
            return msgspec.msgpack.decode(data, type=SavedAccounts), self._box.uids()
        except msgspec.MsgspecError as error:
            _log.warning("the books of pods that ran before cannot be read: %s", error)
            return None, set()

    async def write(self, ended: Iterable[PodUsage], running: SavedAccounts) -> None:
        """Keep the pods that ended, and the books of the others; what fails is tried again."""
        self._waiting += ended
        async with self._lock:
            problem = await asyncio.to_thread(self._write, running)
        if problem and problem != self.problem:  # once, and not at every try
            _log.warning("what pods used is not written: %s; it is tried again", problem)
        self.problem = problem

    def write_now(self, running: SavedAccounts) -> None:
        """Keep them before the process ends; a write that is under way comes first."""
        with self._writing:
            self._put(running)
            self._is_last = True

    async def page(self, after: int, running: list[PodUsage]) -> UsagePage:
        """Return what is asked for."""
        async with self._lock:
            found = await asyncio.to_thread(self._box.after, after, MOST_ENDED + 1)
            return UsagePage(
                v=1,
                stream=self._box.stream,
                last=self._box.last,
                ended=[EndedPod(seq, usage) for seq, usage in found[:MOST_ENDED]],
                more=len(found) > MOST_ENDED,
                dropped=self._box.dropped,
                running=running,
            )

    async def ack(self, upto: int, stream: str) -> int:
        """Forget what somebody has kept; return how many those were.

        Raises:
            WrongStreamError: It is of another folder, or more than there ever was.
            OSError: It cannot be written down.
        """
        async with self._lock:
            if stream not in {"", self._box.stream}:
                raise WrongStreamError(
                    f"stream {stream} is no more, this is {self._box.stream}: begin after 0"
                )
            if upto > self._box.last:
                raise WrongStreamError(
                    f"upto {upto} is more than the last number, {self._box.last}: begin after 0"
                )
            return await asyncio.to_thread(self._box.ack, upto)

    def _write(self, running: SavedAccounts) -> str:
        with self._writing:
            # Books that are older than the last ones are not put over them.
            return "" if self._is_last else self._put(running)

    def _put(self, running: SavedAccounts) -> str:
        try:
            while self._waiting:
                self._box.add(self._waiting[0])
                del self._waiting[0]
            self._box.save_running(msgspec.msgpack.encode(running))
        except OSError as error:
            while len(self._waiting) > _MOST_WAITING:
                del self._waiting[0]
                self._box.lose()
            return str(error)
        return ""

"""The NVIDIA driver as it comes and goes: NVML, opened again when it is there or was reloaded.

A node's agent may start before its driver is installed, and outlives upgrades of it. Calls can take
long where a driver or one of its GPUs hangs, so they are made in threads, which do not wait for one
another, and the end of the process waits for none. It can be closed only while nobody is in it: as
long as a call hangs, it stays open.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from alnair.node.inventory import Inventory, read_inventory, with_mig_modes
from alnair.node.nvml import Nvml, NvmlError, NvmlGpu, Reading
from alnair.node.own_thread import in_own_thread

#: Seconds between looks at whether the driver is there and is the same.
EVERY: Final = 5.0
#: Seconds that closing waits for a call that is under way.
CLOSING: Final = 2.0
#: Seconds after which a call counts as one that hangs.
HANGS: Final = 1.0

_log = logging.getLogger(__name__)


class GpuDriver:
    """NVML, kept open.

    Args:
        opener: Opens NVML; raises NvmlError.

    Attributes:
        gpus: Those of the node, as of the last time that it was opened.
        inventory: More about them, likewise; whether they are in MIG mode, as of the last look.
        version: Of the driver, likewise.
        opened: How often it was opened.
        problem: Why it is not open, or "".
    """

    def __init__(self, opener: Callable[[], Nvml] = Nvml.open) -> None:
        self.gpus: tuple[NvmlGpu, ...] = ()
        self.inventory = Inventory()
        self.version = ""
        self.opened = 0
        self.problem = "the NVIDIA driver has not been asked yet"
        self._opener = opener
        self._nvml: Nvml | None = None
        #: GPUs that answered when they were asked last.
        self._answering: set[str] = set()
        self._is_suspect = False
        #: Held while NVML is looked after; calls for GPUs go on beside it.
        self._looking = threading.Lock()
        self._changed = threading.Condition()
        self._is_reopening = False
        #: Calls that have not returned: which GPU, "" for all, and since when.
        self._under_way: dict[object, tuple[str, float]] = {}
        self._reopened = asyncio.Event()

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY)

    async def look(self) -> None:
        """See that it is open and the same; open it, again if need be."""
        before, problem = self.opened, self.problem
        await in_own_thread(self._look)
        if self.problem and self.problem != problem:
            text = "%s; limits hold, but nobody looks whether they are gone round"
            _log.warning(text, self.problem)
        if self.opened != before:
            _log.info("NVIDIA driver %s, %d GPUs", self.version, len(self.gpus))
            self._reopened.set()
            self._reopened = asyncio.Event()

    async def reopened(self, opened: int) -> None:
        """Wait until it was opened more often than so."""
        while self.opened <= opened:
            await self._reopened.wait()

    def read(self, uuid: str) -> Reading:
        """Ask all of a GPU; of one by one thread at a time.

        Raises:
            NvmlError: There is no driver, or no such GPU, or it is lost.
        """
        with self._using(uuid) as nvml:
            try:
                found = nvml.read(uuid)
            except NvmlError:
                # Once per loss: a GPU that was reset answers to those who open NVML anew.
                self._is_suspect |= uuid in self._answering
                self._answering.discard(uuid)
                raise
        self._answering.add(uuid)
        return found

    def note(self, uuid: str) -> None:
        """Ask what a GPU's processes use, for its next reading; by one thread at a time.

        Raises:
            NvmlError: There is no driver, or the GPU is lost.
        """
        with self._using(uuid) as nvml:
            nvml.note(uuid)

    def xids(self) -> list[tuple[str, int]]:
        """Return (GPU, XID) of the errors since the last time; GPU "" if it is not known which."""
        try:
            with self._using() as nvml:
                return nvml.xids()
        except NvmlError:
            return []

    def suspect(self) -> None:
        """Open it again at the next look: a GPU that was lost may answer then."""
        self._is_suspect = True

    def close(self) -> None:
        """Close it; where a call hangs, that is left to the end of the process."""
        if self._looking.acquire(timeout=CLOSING):
            try:
                self._close()
            finally:
                self._looking.release()

    @contextlib.contextmanager
    def _using(self, uuid: str = "") -> Iterator[Nvml]:
        call = object()
        with self._changed:
            self._changed.wait_for(lambda: not self._is_reopening)
            if self._nvml is None:
                raise NvmlError(self.problem)
            nvml = self._nvml
            self._under_way[call] = uuid, time.monotonic()
        try:
            yield nvml
        finally:
            with self._changed:
                del self._under_way[call]
                self._changed.notify_all()

    def _asked_for(self, seconds: float) -> set[str]:
        """GPUs for which a call has been under way for so long; "" where it is one for all."""
        with self._changed:
            before = time.monotonic() - seconds
            return {uuid for uuid, since in self._under_way.values() if since <= before}

    def _close(self) -> bool:
        """Close it once nobody is in it; False where that takes too long."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._under_way, CLOSING):
                return False
            if self._nvml is not None:
                self._nvml.close()
                self._nvml = None
            return True

    def _look(self) -> None:
        with self._looking:
            if self._nvml is not None:
                try:
                    self._nvml.check()
                except NvmlError as error:
                    if not self._is_suspect:
                        _log.warning("%s: it is opened again", error)
                    self._is_suspect = True
                if not self._is_suspect:
                    # One that is being asked may hang: there is a next time.
                    busy = self._asked_for(0)
                    self.inventory = with_mig_modes(self.inventory, self._nvml, busy)
                    return
            if not self._asked_for(HANGS):
                self._reopen()

    def _reopen(self) -> None:
        with self._changed:
            self._is_reopening = True
        try:
            if not self._close():
                return
            self._is_suspect = False
            try:
                nvml = self._opener()
            except NvmlError as error:
                self.problem = str(error)
                return
            self._nvml = nvml
            self.problem = ""
            self.gpus, self.version = nvml.gpus, nvml.driver
            self.inventory = read_inventory(nvml)
            self.opened += 1
        finally:
            with self._changed:
                self._is_reopening = False
                self._changed.notify_all()

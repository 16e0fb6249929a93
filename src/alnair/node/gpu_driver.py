"""The NVIDIA driver as it comes and goes: NVML, opened again when it is there or was reloaded.

A node's agent may start before its driver is installed, and outlives upgrades of it. Calls can take
long where a driver hangs, so they are made in threads, one at a time, and the end of
the process waits for none.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from alnair.node.inventory import Inventory, read_inventory, with_mig_modes
from alnair.node.nvml import Load, Nvml, NvmlError, NvmlGpu, Usage
from alnair.node.own_thread import in_own_thread

#: Seconds between looks at whether the driver is there and is the same.
EVERY: Final = 5.0
#: Seconds that closing waits for a call that is under way.
CLOSING: Final = 2.0

T = TypeVar("T")

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
        self._lock = threading.Lock()
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

    def load(self, uuid: str) -> Load:
        """Ask what a GPU does.

        Raises:
            NvmlError: There is no driver, or no such GPU, or it is lost.
        """
        return self._ask(uuid, Nvml.load)

    def usage(self, uuid: str) -> Usage:
        """Ask how busy a GPU is, and how full.

        Raises:
            NvmlError: There is no driver, or no such GPU, or it is lost.
        """
        return self._ask(uuid, Nvml.usage)

    def xids(self) -> list[tuple[str, int]]:
        """Return (GPU, XID) of the errors since the last time; GPU "" if it is not known which."""
        with self._lock:
            return self._nvml.xids() if self._nvml is not None else []

    def suspect(self) -> None:
        """Open it again at the next look: a GPU that was lost may answer then."""
        self._is_suspect = True

    def close(self) -> None:
        """Close it; where a call hangs, that is left to the end of the process."""
        if self._lock.acquire(timeout=CLOSING):
            try:
                self._close()
            finally:
                self._lock.release()

    def _ask(self, uuid: str, question: Callable[[Nvml, str], T]) -> T:
        with self._lock:
            if self._nvml is None:
                raise NvmlError(self.problem)
            try:
                found = question(self._nvml, uuid)
            except NvmlError:
                # Once per loss: a GPU that was reset answers to those who open NVML anew.
                self._is_suspect |= uuid in self._answering
                self._answering.discard(uuid)
                raise
            self._answering.add(uuid)
            return found

    def _close(self) -> None:
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None

    def _look(self) -> None:
        with self._lock:
            if self._nvml is not None:
                try:
                    self._nvml.check()
                except NvmlError as error:
                    _log.warning("%s: it is opened again", error)
                    self._is_suspect = True
                if not self._is_suspect:
                    self.inventory = with_mig_modes(self.inventory, self._nvml)
                    return
            self._is_suspect = False
            self._close()
            try:
                self._nvml = self._opener()
            except NvmlError as error:
                self.problem = str(error)
                return
            self.problem = ""
            self.gpus, self.version = self._nvml.gpus, self._nvml.driver
            self.inventory = read_inventory(self._nvml)
            self.opened += 1

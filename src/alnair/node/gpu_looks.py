"""One look per second at every GPU: whether it answers, what it does, which errors it had.

Who judges health and who measures load share it, so that NVML is asked once.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

import msgspec

from alnair.node.nvml import NvmlError, NvmlGpu, Usage
from alnair.node.own_thread import in_own_thread
from alnair.profiler.samples import GpuSample

#: Seconds between looks.
EVERY: Final = 1.0
#: Seconds after which a driver that has not come back counts as one that does not answer.
PATIENCE: Final = 10.0


class Driver(Protocol):
    """What is asked of NVML; see `GpuDriver`."""

    gpus: tuple[NvmlGpu, ...]
    opened: int

    def usage(self, uuid: str) -> Usage:
        """Ask what a GPU does; raises NvmlError."""
        ...

    def xids(self) -> list[tuple[str, int]]:
        """Return the errors since the last time."""
        ...


class GpuLook(msgspec.Struct, frozen=True):
    """What was seen.

    Attributes:
        now: Seconds, monotonic.
        opened: How often NVML had been opened.
        usages: Of the GPUs that answered.
        problems: Why the others did not.
        xids: (GPU, XID) of the errors since the last look; GPU "" if it is not known which.
        samples: Of the GPUs that answered: all that the profiler wants to know.
    """

    now: float
    opened: int
    usages: dict[str, Usage]
    problems: dict[str, str]
    xids: tuple[tuple[str, int], ...] = ()
    samples: dict[str, GpuSample] = {}


class GpuLooks:
    """Looks, and hands out what was seen.

    Args:
        driver: NVML.
        listeners: Called with every look, in the event loop; they do not wait.
    """

    def __init__(self, driver: Driver, listeners: Iterable[Callable[[GpuLook], None]]) -> None:
        self._driver = driver
        self._listeners = tuple(listeners)
        #: All GPUs that were ever there: one that is lost is missing when NVML is opened anew.
        self._known: dict[str, None] = {}

    async def run(self) -> None:
        """Look each second, until cancelled."""
        while True:
            began = time.monotonic()
            await self.look()
            await asyncio.sleep(max(0.1, EVERY - (time.monotonic() - began)))

    async def look(self) -> None:
        """Look once; while the driver does not come back, say so."""
        asked = in_own_thread(self._ask)
        while True:
            with contextlib.suppress(TimeoutError):
                self._tell(await asyncio.wait_for(asyncio.shield(asked), PATIENCE))
                return
            silent = f"the NVIDIA driver has not answered for {PATIENCE:g} s"
            problems = dict.fromkeys(self._known, silent)
            self._tell(GpuLook(time.monotonic(), self._driver.opened, {}, problems))

    def _tell(self, seen: GpuLook) -> None:
        for listener in self._listeners:
            listener(seen)

    def _ask(self) -> GpuLook:
        self._known |= dict.fromkeys(gpu.uuid for gpu in self._driver.gpus)
        usages: dict[str, Usage] = {}
        problems: dict[str, str] = {}
        # Errors first: a GPU that fell off the bus is one with a cause, and not only silent.
        xids = tuple(self._driver.xids())
        for uuid in tuple(self._known):
            try:
                usages[uuid] = self._driver.usage(uuid)
            except NvmlError as error:
                problems[uuid] = str(error)
        return GpuLook(time.monotonic(), self._driver.opened, usages, problems, xids)

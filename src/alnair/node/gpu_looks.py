"""One look per second at every GPU: whether it answers, what it does, which errors it had.

Who judges health, who measures load, who looks after processes and who profiles pods share it, so
that NVML is asked once.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

import msgspec

from alnair.node.fixed_rate import FixedRate
from alnair.node.gpu_rounds import Rounds
from alnair.node.nvml import NvmlError, NvmlGpu
from alnair.node.readings.values import Load, Reading, Usage
from alnair.profiler.samples import GpuSample

#: Seconds between looks.
EVERY: Final = 1.0
#: Seconds after which a GPU that has not answered counts as one that does not.
PATIENCE: Final = 10.0
#: Seconds between two questions what processes use, where that is wanted finely: somewhat less than
#: the driver's own samples take, a sixth of a second, so that each of them is told by itself.
BETWEEN: Final = 0.15
#: Asked for like a GPU: the errors of all.
_ERRORS: Final = ""


class Driver(Protocol):
    """What is asked of NVML; see `GpuDriver`."""

    gpus: tuple[NvmlGpu, ...]
    opened: int

    def read(self, uuid: str) -> Reading:
        """Ask all of a GPU; raises NvmlError."""
        ...

    def note(self, uuid: str) -> None:
        """Ask what a GPU's processes use, for its next reading; raises NvmlError."""
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
        loads: Of the GPUs that answered: what their processes hold and do.
        samples: Of the same: all that the profiler wants to know.
        late: GPUs that have not answered yet: nothing is known of them now.
        unmapped: GPU → processes with a use that the driver does not list on it.
        skipped: Looks so far that came to nothing, as the one before took too long.
    """

    now: float
    opened: int
    usages: dict[str, Usage]
    problems: dict[str, str]
    xids: tuple[tuple[str, int], ...] = ()
    loads: dict[str, Load] = {}
    samples: dict[str, GpuSample] = {}
    late: frozenset[str] = frozenset()
    unmapped: dict[str, int] = {}
    skipped: int = 0


class GpuLooks:
    """Looks, and hands out what was seen.

    Args:
        driver: NVML.
        listeners: Called with every look, in the event loop; they do not wait.
        every: Seconds between looks.
        finely: Says of which GPUs it must be known well what each process uses: between two looks
            they are asked for that alone.
    """

    def __init__(
        self,
        driver: Driver,
        listeners: Iterable[Callable[[GpuLook], None]],
        every: float = EVERY,
        finely: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._driver = driver
        self._listeners = tuple(listeners)
        self._every = every
        self._finely = finely
        self._rounds = Rounds(self._ask)
        self._notes = Rounds(self._note)
        #: Also those that came when nobody waited for them any more.
        self._xids = deque[tuple[str, int]]()
        self._rate = FixedRate(every, time.monotonic())
        #: All GPUs that were ever there: one that is lost is missing when NVML is opened anew.
        self._known: dict[str, None] = {}

    async def run(self) -> None:
        """Look at a fixed rate, until cancelled."""
        self._rate = FixedRate(self._every, time.monotonic())
        while True:
            await self.look()
            await self._rest(self._rate.rest(time.monotonic()))

    async def _rest(self, seconds: float) -> None:
        """Wait for the next look; meanwhile, ask what processes use where that is wanted finely."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > BETWEEN:
            await asyncio.sleep(BETWEEN)
            there = self._known.keys() - self._rounds.hanging.keys()
            await self._notes.all([uuid for uuid in self._finely() if uuid in there])
        await asyncio.sleep(left)

    async def look(self) -> None:
        """Look once; of a GPU that does not come back, say so."""
        self._known |= dict.fromkeys(gpu.uuid for gpu in self._driver.gpus)
        # Errors first: a GPU that fell off the bus is one with a cause, and not only silent.
        asked = [uuid for uuid in self._known if uuid not in self._notes.hanging]
        answers = await self._rounds.all([_ERRORS, *asked])
        xids = tuple(self._xids.popleft() for _ in range(len(self._xids)))
        now = time.monotonic()
        problems = {uuid: said for uuid, said in answers.items() if isinstance(said, str)}
        found = {uuid: said for uuid, said in answers.items() if isinstance(said, Reading)}
        hanging = self._rounds.hanging | self._notes.hanging
        late = set()
        for uuid in self._known.keys() - found.keys() - problems.keys():
            # One that hangs no more has answered too late for this look: it is asked at the next.
            if now - hanging.get(uuid, now) < PATIENCE:
                late.add(uuid)
            else:
                problems[uuid] = f"the NVIDIA driver has not answered for {PATIENCE:g} s"
        seen = GpuLook(
            now=now,
            opened=self._driver.opened,
            usages={uuid: one.usage for uuid, one in found.items()},
            problems=problems,
            xids=xids,
            loads={uuid: one.load for uuid, one in found.items()},
            samples={uuid: one.sample for uuid, one in found.items()},
            late=frozenset(late),
            unmapped={uuid: one.unmapped for uuid, one in found.items() if one.unmapped},
            skipped=self._rate.skipped,
        )
        for listener in self._listeners:
            listener(seen)

    def _ask(self, uuid: str) -> Reading | str | None:
        if uuid == _ERRORS:
            self._xids.extend(self._driver.xids())
            return None
        try:
            return self._driver.read(uuid)
        except NvmlError as error:
            return str(error)

    def _note(self, uuid: str) -> None:
        with contextlib.suppress(NvmlError):  # the next look says so
            self._driver.note(uuid)

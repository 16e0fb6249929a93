"""Counters of the hardware from a dcgm-exporter, for GPUs whose driver has no GPM: optional.

It is asked in a loop of its own and with a time limit, and what it said last counts for a while
only. So one that is slow, broken or gone costs its figures and nothing else.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

import aiohttp
import msgspec

from alnair.node.gpu_looks import GpuLook
from alnair.node.own_thread import in_own_thread
from alnair.profiler.dcgm import DcgmSample, read_exposition, whole_gpus
from alnair.profiler.pods.rates import Figures
from alnair.profiler.samples import GpuSample

#: Seconds between two times that it is asked; it looks at its GPUs every 30 s by default.
EVERY: Final = 10.0
#: Seconds that it has to answer.
PATIENCE: Final = 3.0
#: Seconds after which what it said says nothing of now.
_FRESH: Final = 45.0
#: Bytes of an answer: 8 GPUs have 100,000.
_MOST: Final = 4 << 20

_log = logging.getLogger(__name__)


class DcgmError(Exception):
    """It cannot be read; says why."""


class DcgmSource:
    """Asks, and fills in what the driver does not say.

    Args:
        url: Of its metrics, such as http://dcgm-exporter.gpu-operator:9400/metrics.
        now: Seconds, monotonic.

    Attributes:
        problem: Why it cannot be read; empty while it can.
    """

    def __init__(self, url: str, now: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._now = now
        self._at = -_FRESH
        self._gpus: dict[str, DcgmSample] = {}
        self.problem = "it has not been asked yet"

    async def run(self) -> None:
        """Ask, until cancelled."""
        timeout = aiohttp.ClientTimeout(total=PATIENCE)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
            while True:
                await self.ask(session)
                await asyncio.sleep(EVERY)

    async def ask(self, session: aiohttp.ClientSession) -> None:
        """Ask once; what is wrong is kept, and said when it is news."""
        before = self.problem
        try:
            found = await self._read(session)
        except TimeoutError:
            self.problem = f"it has not answered within {PATIENCE:g} s"
        except (DcgmError, aiohttp.ClientError, OSError, ValueError) as error:
            self.problem = str(error) or type(error).__name__
        else:
            self._gpus, self._at, self.problem = found, self._now(), ""
        if self.problem and self.problem != before:
            _log.warning("dcgm-exporter at %s is not read: %s", self._url, self.problem)

    async def _read(self, session: aiohttp.ClientSession) -> dict[str, DcgmSample]:
        async with session.get(self._url, allow_redirects=False) as answer:
            if answer.status != 200:
                raise DcgmError(f"it answers {answer.status}, and not 200: is its path /metrics?")
            data = bytearray()
            async for piece in answer.content.iter_chunked(1 << 16):
                data += piece
                if len(data) > _MOST:
                    raise DcgmError(f"its answer is longer than {_MOST >> 20} MiB")
        text, at = data.decode("utf-8", "replace"), self._now()
        return whole_gpus(await in_own_thread(read_exposition, text, at))

    def fill(self, seen: GpuLook) -> GpuLook:
        """Return a look with the counters that its samples lack."""
        gpus = self._known()
        if not gpus:
            return seen
        samples = {
            uuid: _filled(sample, gpus[uuid].sample) if uuid in gpus else sample
            for uuid, sample in seen.samples.items()
        }
        return msgspec.structs.replace(seen, samples=samples)

    def links(self, uuid: str) -> Figures:
        """Return what goes over a GPU's links, as far as it says."""
        found = self._known().get(uuid)
        return dict(found.links) if found is not None else {}

    def _known(self) -> dict[str, DcgmSample]:
        return self._gpus if self._now() - self._at < _FRESH else {}


def _filled(sample: GpuSample, more: GpuSample) -> GpuSample:
    profiling = {**more.profiling, **sample.profiling}
    return msgspec.structs.replace(sample, profiling=profiling)

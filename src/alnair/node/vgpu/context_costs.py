"""What a CUDA context costs on this node's GPUs: measured once per driver and model, and kept.

The figure of a model is measured on one of its GPUs, by three processes one after another (see
`context_probe`), and goes into the pages of all containers that have none of their own. Without it
the library takes its default (`CONTEXT_DEFAULT` of `pages.abi`), which would let a dearer context
pass a limit until NVML shows it.
"""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from alnair.node.gpu_driver import GpuDriver
from alnair.node.nvml import NvmlGpu
from alnair.node.vgpu.containers.journal import replace
from alnair.node.vgpu.context_probe import Measured, environment
from alnair.node.vgpu.server import VgpuServer

VERSION: Final = 1
#: Seconds that one probe may take; a driver that is not in persistence mode starts up first.
PATIENCE: Final = 30.0
#: Seconds until a model that could not be measured is tried again.
AGAIN: Final = 600.0
_TRIES: Final = 3
_MIB: Final = 1 << 20
#: A context of any GPU yet is far from both.
_PLAUSIBLE: Final = range(_MIB, 8 << 30)

_log = logging.getLogger(__name__)


class Cost(msgspec.Struct, frozen=True):
    """What a context of a GPU model costs with a driver."""

    driver: str
    model: str
    bytes: int


class _Kept(msgspec.Struct, frozen=True):
    version: int
    costs: tuple[Cost, ...]


class ContextCosts:
    """Keeps what a context costs on each GPU, and tells the server.

    Args:
        server: Its containers get the figures; the file is in its folder.
        gpus: Those of the node.
        driver: Its version.
        given_mib: Said by hand, for all GPUs; 0 to measure.
        probes: Whether to measure what the file does not know.
        patience_s: That one probe may take.

    Attributes:
        known: Bytes by UUID; none for a GPU of which nothing is known.
        problems: Why not, by UUID.
    """

    def __init__(
        self,
        server: VgpuServer,
        gpus: tuple[NvmlGpu, ...] = (),
        driver: str = "",
        *,
        given_mib: int = 0,
        probes: bool = True,
        patience_s: float = PATIENCE,
    ) -> None:
        self.known: dict[str, int] = {}
        self.problems: dict[str, str] = {}
        self._server = server
        self._gpus = gpus
        self._driver = driver
        self._given = given_mib * _MIB
        self._probes = probes and not given_mib
        self._patience = patience_s
        self._path = server.folder / "context-costs"
        self._costs: dict[tuple[str, str], int] = {}

    async def run(self) -> None:
        """Learn what is not known yet; ends when all is."""
        self._load()
        for gpu in self._gpus:
            if cost := self._given or self._costs.get((self._driver, gpu.model), 0):
                self.known[gpu.uuid] = cost
            else:
                self.problems[gpu.uuid] = "not measured yet" if self._probes else "not measured"
        if self._gpus or self._given:
            self._server.learn(self.known, self._given)
        while self._probes:
            for model in sorted({g.model for g in self._gpus if g.uuid not in self.known}):
                await self._learn(model)
            if len(self.known) == len(self._gpus):
                return
            await asyncio.sleep(AGAIN)

    async def follow(self, driver: GpuDriver) -> None:
        """Learn, again for each driver and each set of GPUs that comes, until cancelled."""
        learning: asyncio.Task[None] | None = None
        try:
            while True:
                opened = driver.opened
                if opened and (driver.gpus, driver.version) != (self._gpus, self._driver):
                    await _end(learning)
                    self._gpus, self._driver = driver.gpus, driver.version
                    self.known, self.problems = {}, {}
                    learning = asyncio.create_task(self.run())
                elif learning is None:
                    learning = asyncio.create_task(self.run())  # what was said by hand
                await driver.reopened(opened)
        finally:
            await _end(learning)

    async def _learn(self, model: str) -> None:
        """Measure on the first GPU of a model that lets itself be measured."""
        same = [gpu.uuid for gpu in self._gpus if gpu.model == model]
        for uuid in same:
            found = await self._measure(uuid)
            if not found.problem:
                break
            self.problems[uuid] = found.problem
            _log.warning("cost of a context on %s (%s): %s", uuid, model, found.problem)
        else:
            return
        _log.info("a context on %s costs %.0f MiB", model, found.bytes / _MIB)
        for uuid in same:
            self.known[uuid] = found.bytes
            self.problems.pop(uuid, None)
        self._costs[self._driver, model] = found.bytes
        self._server.learn(self.known, self._given)
        self._save()

    async def _measure(self, uuid: str) -> Measured:
        tries: list[Measured] = []
        while len(tries) < _TRIES and not (tries and tries[-1].problem):
            tries.append(await probe(uuid, self._patience))
        return joined(tries)

    def _load(self) -> None:
        try:
            kept = msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        except FileNotFoundError:
            return
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("%s cannot be read, so contexts are measured anew: %s", self._path, error)
            return
        if kept.version == VERSION:
            self._costs = {(one.driver, one.model): one.bytes for one in kept.costs}

    def _save(self) -> None:
        costs = tuple(Cost(*key, found) for key, found in sorted(self._costs.items()))
        try:
            replace(self._path, msgspec.json.encode(_Kept(VERSION, costs)))
        except OSError as error:
            # After a restart it is measured once more; nothing else is lost.
            _log.warning("%s cannot be written: %s", self._path, error)


async def _end(task: asyncio.Task[None] | None) -> None:
    """Cancel a task and wait for its end; who is cancelled meanwhile is."""
    if task is not None:
        task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()


def joined(tries: Sequence[Measured]) -> Measured:
    """Return the largest of some tries, or why they do not count."""
    if failed := next((one for one in tries if one.problem), None):
        return failed
    found = max(tries, key=lambda one: one.bytes)
    if found.bytes not in _PLAUSIBLE:
        return Measured(problem=f"{found.bytes} bytes for a context cannot be true")
    # Growth of the whole GPU is a context's only while nobody else allocates.
    if found.whole_gpu and found.bytes - min(one.bytes for one in tries) > 2 * _MIB:
        return Measured(
            problem="the driver tells no use per process, and others use the GPU: "
            "give --context-mib, or start the agent while it is idle"
        )
    return found


async def probe(uuid: str, patience_s: float) -> Measured:
    """Measure once, in a process that is killed when it takes too long."""
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "alnair.node.vgpu.context_probe",
            uuid,
            env=environment(uuid, os.environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        return Measured(problem=f"the probe cannot be started: {error}")
    try:
        async with asyncio.timeout(patience_s):
            said, _ = await process.communicate()
    except TimeoutError:
        return Measured(problem=f"making a context took longer than {patience_s:g} s")
    finally:
        if process.returncode is None:
            process.kill()
            # A process that hangs in the kernel does not even die; its end is not waited for.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await process.wait()
    try:
        return msgspec.json.decode(said, type=Measured)
    except msgspec.DecodeError:
        return Measured(problem=f"making a context ended the process (exit {process.returncode})")

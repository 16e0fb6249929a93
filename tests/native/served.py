"""The vGPU server as shipped, over tenants that share a fake GPU: its ticks, looks and corrections.

`VgpuServer` and `Inspection` run as in the agent. What is not theirs is the machine: processes are
in control groups because this file says so, and NVML is asked in the event loop, as a thread of its
own (`GpuLooks`) has no place in virtual time.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import msgspec
import pynvml

from alnair.node.cgroups import Cgroup, Mounts, Proc, Processes
from alnair.node.gpu_looks import BETWEEN, EVERY, GpuLook
from alnair.node.nvml import Nvml
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.server import VgpuServer
from alnair.sharing.violations import Policy
from native.fake import Fake
from native.virtual_loop import VirtualLoop, virtual_time

#: Real seconds in which all processes of a case must have a slot.
PATIENCE = 60.0


class _Groups(Proc):
    """This machine's processes, of which some are in control groups that a test made up."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.mounts = Mounts({"": (str(folder), "/")})
        self.of: dict[int, str] = {}

    def add(self, path: str) -> None:
        """Makes a group."""
        (Path(self.mounts.at[""][0]) / path.lstrip("/")).mkdir()

    def cgroup(self, pid: int) -> Cgroup | None:
        path = self.of.get(pid, "/")
        return Cgroup(path, path)

    def processes(self, path: str, controller: str = "") -> Processes | None:
        return Processes(sorted(pid for pid, its in self.of.items() if its == path), True)


class Served:
    """Containers of a server on one fake GPU.

    Args:
        fake: the GPU; of a virtual clock the server has the time.
        shares: a container's each; the name of container i is str(i).
        folder: of the server.
        corrects: whether NVML is looked at.
    """

    def __init__(
        self, fake: Fake, shares: Sequence[Share], folder: Path, *, virtual: bool, corrects: bool
    ) -> None:
        self._fake, self._shares, self._folder = fake, shares, folder
        self._virtual, self._corrects = virtual, corrects
        self._stack = ExitStack()
        #: What the server says of containers that do what they may not.
        self.accused: list[str] = []

    def __enter__(self) -> Self:
        self._loop = VirtualLoop(self._fake) if self._virtual else asyncio.new_event_loop()
        self._stack.callback(self._loop.close)
        if isinstance(self._loop, VirtualLoop):
            self._stack.enter_context(virtual_time(self._loop))
        groups = self._folder / "groups"
        groups.mkdir(parents=True)
        self._groups = _Groups(groups)
        self._server = VgpuServer(self._folder / "server", self._groups)
        self._nvml = Nvml.of(pynvml)
        self._stack.callback(self._nvml.close)
        self._loop.run_until_complete(self._begin())
        self._stack.callback(self.die)
        self.containers: list[VgpuContainer] = list(self._server.containers.values())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    async def _begin(self) -> None:
        (self._folder / "server").mkdir()
        await self._server.__aenter__()
        self._alive = True
        for number, share in enumerate(self._shares):
            self._groups.add(f"/{number}")
            who = ContainerMatch(cgroup=f"/{number}")
            said = self._server.prepare(ContainerSlices(str(number), who, (share,)))
            assert not said, said
        # Looked up at each call: the clock is that of the fake's time meanwhile.
        clock = lambda: time.monotonic()  # noqa: E731, PLW0108
        inspection = Inspection(self._server, Policy.WARN, self._accuse, clock=clock)
        self._looking = asyncio.ensure_future(self._look(inspection))

    async def _look(self, inspection: Inspection) -> None:
        while self._corrects:
            for _ in range(int(EVERY / BETWEEN)):
                await asyncio.sleep(BETWEEN)
                for uuid in self._server.compute.shared:
                    self._nvml.note(uuid)
            await asyncio.sleep(EVERY % BETWEEN)
            read = {gpu.uuid: self._nvml.read(gpu.uuid) for gpu in self._nvml.gpus}
            usages = {uuid: one.usage for uuid, one in read.items()}
            loads = {uuid: one.load for uuid, one in read.items()}
            inspection.take(GpuLook(time.monotonic(), 1, usages, {}, loads=loads))

    def _accuse(self, container: VgpuContainer, _: str, said: object) -> None:
        self.accused.append(f"{container.assignment.name}: {said}")

    def has(self, number: int, pid: int) -> None:
        """Puts a process into a container."""
        self._groups.of[pid] = f"/{number}"

    def registered(self, number: int) -> int:
        """How many processes of a container have a slot."""
        self._loop.run_until_complete(asyncio.sleep(0))
        self.containers[number].read()
        return sum(bool(slot.owner) for slot in self.containers[number].slots)

    def limit(self, number: int, percent: int) -> None:
        """Changes a limit, as a person would."""
        known = self._server.containers[str(number)].assignment
        share = msgspec.structs.replace(known.shares[0], compute_percent=percent)
        if share != known.shares[0]:
            said = self._server.change(msgspec.structs.replace(known, shares=(share,)))
            assert not said, said

    def scale(self, number: int) -> float:
        """The correction of a container's prices in force."""
        return self.containers[number].limits.page.device[0].cost_scale_ppm / 1e6 or 1.0

    def join(self) -> None:
        """The clock waits for the server from now on."""
        if isinstance(self._loop, VirtualLoop):
            self._loop.join()

    def leave(self) -> None:
        """The clock does not wait for it any more."""
        if isinstance(self._loop, VirtualLoop):
            self._loop.leave()

    def until(self, when_ns: int) -> None:
        """Serves until a time of the fake's."""
        seconds = when_ns / 1e9 - self._loop.time()
        if seconds > 0:
            self._loop.run_until_complete(asyncio.sleep(seconds))

    def die(self) -> None:
        """Ends the server; its containers go on by their pages."""
        if not self._alive:
            return
        self._alive = False
        self._looking.cancel()
        self._loop.run_until_complete(self._end())

    async def _end(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await self._looking
        await self._server.__aexit__()

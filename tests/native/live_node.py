"""A server of one fake GPU, with containers whose processes make calls of the driver."""

import asyncio
from contextlib import ExitStack

import msgspec

from alnair.node.gpu_looks import GpuLook
from alnair.node.nvml import Nvml
from alnair.node.vgpu.containers.container import VgpuContainer
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.server import VgpuServer
from native import build
from native.calls import MIB, OUT_OF_MEMORY, SUCCESS, Calls, Out, Var
from native.fake import Fake
from native.server_kit import Group, control_group

GIB = 1024 * MIB
#: Of the fake H200; and of the slices here.
CONTEXT, SLICE = 522 * MIB, 8 * GIB
#: Seconds of a turn of the loop, and without one, after which a server may have come too late.
_TURN, _STILL = 0.05, 0.5
#: Of a call that may have been too soon for the server.
_TRIES = 5


class Node:
    """A server of one GPU, with containers, whose processes make calls."""

    def __init__(self, fake: Fake, nvml: Nvml, server: VgpuServer, stack: ExitStack) -> None:
        self.fake, self.server, self._nvml, self._stack = fake, server, nvml, stack
        self.uuid = f"GPU-{fake.uuid()}"
        self.evicted: list[str] = []
        server.loans.evict = self._evict

    def _evict(self, container: VgpuContainer, _: str, why: str) -> None:
        self.evicted.append(f"{container.assignment.name}: {why}")

    async def look(self) -> GpuLook:
        """One look at the GPU, by NVML."""
        read = self._nvml.read(self.uuid)
        now = asyncio.get_running_loop().time()
        seen = GpuLook(now, 1, {self.uuid: read.usage}, {}, loads={self.uuid: read.load})
        self.server.loans.take(seen, self._nvml.gpus)
        return seen

    def group(self) -> Group:
        return self._stack.enter_context(control_group())

    def slices(self, name: str, group: Group, mib: int, **share: object) -> ContainerSlices:
        made = msgspec.structs.replace(Share(self.uuid, mib, context_mib=CONTEXT // MIB), **share)
        return ContainerSlices(name, ContainerMatch(cgroup=group.name), (made,), keep=True)

    async def tenant(self, name: str, mib: int = SLICE // MIB, **share: object) -> "Tenant":
        """A container with one process, which has its context."""
        group = self.group()
        said = self.server.prepare(self.slices(name, group, mib, **share))
        assert not said, said
        return await self.process(name, group)

    async def process(self, name: str, group: Group) -> "Tenant":
        """One more process of a container."""
        found = self.server.containers[name]
        environment = {
            **self.fake.environment(name),
            "ALNAIR_VGPU_DIR": str(found.folder),
            "LD_PRELOAD": str(build.INTERPOSER),
        }
        call = Calls(environment, device=None)
        (group.folder / "cgroup.procs").write_text(f"{call.process.pid}\n")
        made = Tenant(name, call, group)
        self._stack.callback(made.end)
        for words in (
            ("cuInit", 0),
            ("cuDevicePrimaryCtxRetain", Out("context"), 0),
            ("cuCtxSetCurrent", Var("context")),
        ):
            assert await made(*words) == SUCCESS
        return made

    def loan(self, name: str) -> int:
        return self.server.containers[name].loan(0)


class Tenant:
    """A process of a container."""

    def __init__(self, name: str, call: Calls, group: Group) -> None:
        self.name, self.call, self.group = name, call, group

    async def __call__(self, name: str, *arguments: int | Out | Var) -> int:
        """Make a call while the server serves.

        The library gives the server a second to lend, and then does without. Where this process,
        and the server with it, stood still for that long, the call is made again.
        """
        for _ in range(_TRIES):
            result, stood_still = await self._once(name, *arguments)
            if result != OUT_OF_MEMORY or stood_still < _STILL:
                break
        return result

    async def _once(self, name: str, *arguments: int | Out | Var) -> tuple[int, float]:
        """Make a call; return what it gives, and the longest seconds without a turn of the loop."""
        clock = asyncio.get_running_loop().time
        calling = asyncio.ensure_future(asyncio.to_thread(self.call, name, *arguments))
        longest, last = 0.0, clock()
        while not calling.done():
            await asyncio.wait([calling], timeout=_TURN)
            longest, last = max(longest, clock() - last), clock()
        return calling.result(), longest

    async def allocate(self, name: str, bytes_: int) -> bool:
        """Whether it got so much."""
        result = await self("cuMemAlloc_v2", Out(name), bytes_)
        assert result in (SUCCESS, OUT_OF_MEMORY)
        return result == SUCCESS

    async def free(self, name: str) -> None:
        assert await self("cuMemFree_v2", Var(name)) == SUCCESS

    def end(self) -> None:
        if self.call.process.poll() is None:
            self.call.kill()

"""A profiler of pods on a machine of files, with GPUs that a test makes."""

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from alnair.node.cgroups import Proc
from alnair.node.gpu_looks import GpuLook
from alnair.node.inventory import GpuFacts, Inventory
from alnair.node.load import GpuHolder
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.profiler.kept_usage import KeptUsage
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.profiler.samples import GpuSample, ProcessSample
from kit.fake_cgroups import ID, UID, FakeCgroups

GPU = "GPU-00000000-0000-0000-0000-000000000001"
MIB = 1 << 20


class Names(msgspec.Struct, frozen=True):
    """What the API server says of a pod."""

    uid: str
    containers: dict[str, str]
    name: str = "train"
    namespace: str = "team"
    is_ended: bool = False
    owner: tuple[str, str] = ("Job", "nightly")


class ProfiledNode:
    """A node with one pod, which has a GPU.

    Args:
        folder: Of the machine's files, and of the outbox.

    Attributes:
        names: What the API server says, by uid.
        driver_samples: The driver's own since the last look.
    """

    def __init__(self, folder: Path) -> None:
        self.machine = FakeCgroups(folder / "machine")
        self.folder = folder
        self.names: dict[str, Names] = {}
        self.given: list[GpuHolder] = []
        self.micros = 0
        self.driver_samples: tuple[tuple[float, float], ...] = ()
        self.profiler = self.start()

    def start(self) -> PodProfiler:
        """Begin anew, as an agent that is started."""
        facts = GpuFacts(0, GPU, "NVIDIA H100", 81_559, 0)
        self.profiler = PodProfiler(
            "n1",
            Proc(self.machine.proc),
            lambda: self.names,
            KeptUsage(self.folder / "usage"),
            holders=lambda: self.given,
            inventory=lambda: Inventory("1", (facts,)),
        )
        return self.profiler

    def pod(self, uid: str = UID, container: str = ID, name: str = "train") -> str:
        """Let a pod run that was given the GPU; return the path of its container."""
        self.names[uid] = Names(uid, {container: "main"}, name)
        self.given.append(GpuHolder(OwningPod("team", name, uid, "main"), (GPU,)))
        return self.machine.container(uid, container)

    async def second(self, *processes: ProcessSample, path: str = "", cores: float = 0.5) -> None:
        """Let a moment pass in which the GPU was used so; a container used so many cores."""
        await asyncio.sleep(0.002)
        self.look(processes)
        if path:
            self.micros += int(cores * 1e6)
            self.machine.write(path, "cpu.stat", f"usage_usec {self.micros}\nnr_periods 0\n")
        await self.profiler.tick()

    def look(self, processes: Iterable[ProcessSample]) -> None:
        """Tell the profiler of the GPU."""
        now = time.monotonic()
        sample = GpuSample(
            now,
            60.0,
            busy=self.driver_samples,
            memory_copy=5.0,
            power_w=300.0,
            processes=tuple(processes),
        )
        self.profiler.take(GpuLook(now, 1, {}, {}, samples={GPU: sample}))

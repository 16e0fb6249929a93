"""Containers for tests of the vGPU server: real processes in control groups of their own."""

import asyncio
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from alnair.node.cgroups import Proc, started
from alnair.node.gpu_looks import GpuLook, GpuLooks
from alnair.node.nvml import Nvml
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.pages import abi
from native import build
from native.fake import Fake

GPU = "GPU-00000000-0000-0000-0000-000000000001"
OTHER_GPU = "GPU-00000000-0000-0000-0000-000000000002"
TENANT = Path(__file__).parent / "clients" / "tenant.py"
#: A shell enters the group, and becomes the client.
ENTER = 'echo $$ > "$0" && exec "$@"'


class OpenDriver:
    """NVML, as a driver that is there and stays."""

    def __init__(self, nvml: Nvml) -> None:
        self.gpus, self.opened = nvml.gpus, 1
        self.read, self.xids = nvml.read, nvml.xids


def looks(nvml: Nvml, inspection: Inspection, *before: Callable[[GpuLook], object]) -> GpuLooks:
    """Looks at the GPUs, which the inspection takes, and these before it."""
    return GpuLooks(OpenDriver(nvml), [*before, inspection.take])


#: Seconds of one turn of `until`.
_TURN = 0.01


async def until(true: Callable[[], object], seconds: float = 2) -> float:
    """Wait for something; return how long that took, in seconds.

    They are counted by turns of the loop that a server here works in, too: where this machine
    stands still, neither of them had that time.
    """
    turns = 0
    while not true():
        assert turns * _TURN < seconds, f"not within {seconds:g} s"
        await asyncio.sleep(_TURN)
        turns += 1
    return turns * _TURN


class Tenant:
    """A process in a control group, which does what it is told; see clients/tenant.py."""

    def __init__(self, group: "Group | None", folder: Path) -> None:
        # It moves itself into the group, before it does anything else.
        procs = "" if group is None else str(group.folder / "cgroup.procs")
        self.process = subprocess.Popen(
            [sys.executable, str(TENANT), str(folder), procs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **words: Any) -> Any:
        """Have it do something, and return what came of it."""
        self.start(**words)
        return self.answer()

    def start(self, **words: Any) -> None:
        """Have it do something."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """What came of it."""
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        """Kill it, and bury it."""
        self.process.kill()
        self.process.wait()
        for end in (self.process.stdin, self.process.stdout):
            assert end
            end.close()


class Group:
    """A control group; removed at the end, with its processes.

    Args:
        name: Its path; by default one below the root.
    """

    def __init__(self, name: str = "") -> None:
        proc = Proc()
        self.name = name or f"/alnair-test-{uuid.uuid4().hex[:12]}"
        self.controller = "" if "" in proc.mounts.at else "pids"
        folder = proc.mounts.folder(self.name, self.controller)
        if folder is None:
            pytest.skip("no cgroup hierarchy is mounted here")
        self.folder = folder
        try:
            folder.mkdir()
        except OSError as error:
            pytest.skip(f"control groups cannot be made here: {error.strerror}")
        self.tenants: list[Tenant] = []

    def start(self, folder: Path) -> Tenant:
        """Start a process of this container, which finds its folder there."""
        tenant = Tenant(self, folder)
        self.tenants.append(tenant)
        return tenant

    def close(self) -> None:
        """Kill what runs in it, and remove it."""
        for tenant in self.tenants:
            if tenant.process.returncode is None:
                tenant.kill()
        self.remove()

    def remove(self) -> None:
        """Remove it, once it is empty."""
        if self.folder.is_dir():
            self.folder.rmdir()

    def assignment(self, name: str = "a", **fields: Any) -> ContainerSlices:
        """A container whose processes are those of this group, with a slice of one GPU."""
        share = {"memory_mib": 1024, "compute_percent": 50} | fields
        return ContainerSlices(
            name, ContainerMatch(cgroup=self.name), (Share(GPU, **share),), keep=True
        )


class Hold:
    """A client of the fake driver, without our library: holds memory until it is closed."""

    def __init__(self, fake: Fake, group: Group, mib: int, *kernel: str) -> None:
        program = build.client("hold", "-l:libcuda.so.1")
        procs = group.folder / "cgroup.procs"
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", ENTER, str(procs), str(program), str(mib), *kernel],
            env={**os.environ, **fake.environment("a")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        assert self.process.stdout.readline() == "held\n"

    def close(self) -> None:
        for end in (self.process.stdin, self.process.stdout):
            assert end
            end.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()
        self.process.wait()

    def start_time(self) -> int:
        return start_time(self.process.pid)


def start_time(pid: int) -> int:
    """When a process started, in clock ticks since boot."""
    return started(Path(f"/proc/{pid}/stat").read_text())


@contextmanager
def control_group() -> Iterator[Group]:
    """A new control group."""
    group = Group()
    try:
        yield group
    finally:
        group.close()


def limits(folder: Path) -> abi.Limits:
    """The limits page, as a container reads it."""
    return abi.Limits.from_buffer_copy((folder / "limits").read_bytes())


def slot(folder: Path, index: int) -> abi.Slot:
    """A slot of the counters."""
    with (folder / "counters").open("rb") as file:
        file.seek(abi.HEAD_BYTES + index * abi.SLOT_BYTES)
        return abi.Slot.from_buffer_copy(file.read(abi.SLOT_BYTES))


def write(folder: Path, at: int, data: bytes) -> None:
    """Write into the counters, as any process of the container may."""
    with (folder / "counters").open("r+b") as file:
        file.seek(at)
        file.write(data)


def claim(folder: Path, index: int, owner: int, started: int = 0, **device: int) -> None:
    """Fill a slot, as the library does, on the first GPU."""
    made = abi.Slot(owner=owner, started=started)
    made.loaded[0] = device.pop("loaded", 0)
    for name, value in device.items():
        setattr(made.device[0], name, value)
    write(folder, abi.HEAD_BYTES + index * abi.SLOT_BYTES, bytes(made))
    used = ctypes.c_uint64(index + 1)
    write(folder, abi.offset(abi.Counters, "slots_used"), bytes(used))

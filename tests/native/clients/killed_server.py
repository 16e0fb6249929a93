"""vGPU servers that die at the n-th call of one kind within a step, and what the next one finds."""

import asyncio
import json
import os
import signal
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.server import VgpuServer

GPU = "GPU-00000000-0000-0000-0000-000000000001"


def arm(name: str, at: int) -> None:
    """Have this process die by SIGKILL instead of the call."""
    real, left = getattr(os, name), at

    def dying(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return real(*arguments, **options)

    setattr(os, name, dying)


async def step(folder: Path, step: str, phase: str, group: str) -> None:
    """Prepare a container, change or remove it; die in the middle."""
    first = ContainerSlices("a", ContainerMatch(cgroup=group), (Share(GPU, 1024),), keep=True)
    less = msgspec.structs.replace(first, shares=(Share(GPU, 512),))
    async with VgpuServer(folder) as server:
        if step != "add":
            assert server.prepare(first) == ""
        name, _, at = phase.partition(":")
        arm(name, int(at))
        if step == "remove":
            assert server.remove("a") == ""
        elif step == "change":
            assert server.change(less) == ""
        else:
            assert server.prepare(less if step == "again" else first) == ""
        os._exit(0)


async def check(folder: Path) -> None:
    """Print what a server finds: name → [MiB, bytes held]."""
    async with VgpuServer(folder) as server:
        shown = {
            key: [one.assignment.shares[0].memory_mib, one.held(0)]
            for key, one in server.containers.items()
        }
        for one in server.containers.values():
            assert one.limits.page.device[0].memory_limit >> 20 == shown[one.assignment.name][0]
            assert one.limits.page.sequence % 2 == 0
        print(json.dumps(shown))


def in_a_child(work: Any) -> tuple[int, str]:
    """(exit status, output) of work done in a process of its own."""
    read, written = os.pipe()
    if (child := os.fork()) == 0:
        os.dup2(written, 1)
        try:
            asyncio.run(work())
        except BaseException:  # noqa: BLE001 (the child says it and ends)
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    os.close(written)
    with os.fdopen(read) as end:
        text = end.read()
    return os.waitpid(child, 0)[1], text


if __name__ == "__main__":
    where, what, cgroup, *phases = sys.argv[1:]
    for phase in phases:
        folder = Path(where) / phase
        status, _ = in_a_child(partial(step, folder, what, phase, cgroup))
        assert status in (0, signal.SIGKILL), status
        code, shown = in_a_child(partial(check, folder))
        assert code == 0
        print(json.dumps([status == signal.SIGKILL, json.loads(shown)]))

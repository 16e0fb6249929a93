"""What the vGPU server costs: its ticks while nobody works, and a registration while it ticks.

    python benchmarks/vgpu_server.py [--containers 50] [--processes 4] [--seconds 10] [--json]

Containers have a slice of one of eight GPUs each and so many processes with slots, all idle. The
registrations come from one process in a control group of its own, one after the other; their time
is that from connecting to the answer. Needs Linux and root; no GPU, no NVML.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import struct
import sys
import tempfile
import time
import uuid
from pathlib import Path

from alnair.node.cgroups import Proc
from alnair.node.vgpu.containers.container_slices import ContainerMatch, ContainerSlices, Share
from alnair.node.vgpu.pages import abi
from alnair.node.vgpu.server import VgpuServer
from lib.machine import describe

#: Below the quota of one container, so that none is made to wait.
REGISTRATIONS = 200
MOST_CPU_PERCENT = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--containers", type=int, default=50)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", action="store_true", help="only the line of JSON")
    options = parser.parse_args()
    if os.geteuid():
        print("skipped: control groups can only be made by root", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        result = asyncio.run(
            measure(Path(folder), options.containers, options.processes, options.seconds)
        )
    if not options.json:
        print(
            f"{options.containers} idle containers with {options.processes} processes each: "
            f"{result['idle_cpu_pct']} % of a core (at most {MOST_CPU_PERCENT}), a tick takes "
            f"{result['tick_ms']} ms; a registration {result['register_p50_ms']} ms, "
            f"p99 {result['register_p99_ms']} ms; {describe()}",
            file=sys.stderr,
        )
    met = result["idle_cpu_pct"] <= MOST_CPU_PERCENT
    print(json.dumps({"benchmark": "vgpu_server", **result, "met": met, "machine": describe()}))
    return 0


async def measure(
    folder: Path, containers: int, processes: int, seconds: float
) -> dict[str, float]:
    async with VgpuServer(folder) as server:
        for number in range(containers):
            share = Share(f"GPU-{uuid.UUID(int=number % 8 + 1)}", 1024, 10)
            name = f"c{number}"
            assert (
                server.prepare(ContainerSlices(name, ContainerMatch(cgroup=f"/{name}"), (share,)))
                == ""
            )
            occupy(server.containers[name].folder, processes)
        await asyncio.sleep(1)
        (ticks, busy), cpu, began = server.ticks, time.process_time(), time.perf_counter()
        await asyncio.sleep(seconds)
        spent = (time.process_time() - cpu) / (time.perf_counter() - began)
        ticked = server.ticks[0] - ticks, server.ticks[1] - busy
        times = await register(server)
    return {
        "idle_cpu_pct": round(100 * spent, 2),
        "tick_ms": round(1000 * ticked[1] / ticked[0], 3),
        "register_p50_ms": round(1000 * statistics.median(times), 3),
        "register_p99_ms": round(1000 * statistics.quantiles(times, n=100)[98], 3),
    }


def occupy(folder: Path, processes: int) -> None:
    """Claim slots, as the library does."""
    slots = b"".join(bytes(abi.Slot(owner=number + 1, started=1)) for number in range(processes))
    with (folder / "counters").open("r+b") as file:
        file.seek(abi.HEAD_BYTES)
        file.write(slots)
        file.seek(abi.offset(abi.Counters, "slots_used"))
        file.write(struct.pack("<Q", processes))


async def register(server: VgpuServer) -> list[float]:
    """Seconds of each registration."""
    name = f"alnair-bench-{os.getpid()}"
    mounts = Proc().mounts
    group = mounts.folder(f"/{name}", "" if "" in mounts.at else "pids")
    assert group is not None
    group.mkdir()
    try:
        share = Share(f"GPU-{uuid.UUID(int=1)}")
        assert (
            server.prepare(ContainerSlices("peer", ContainerMatch(cgroup=f"/{name}"), (share,)))
            == ""
        )
        read, written = os.pipe()
        if (child := os.fork()) == 0:
            (group / "cgroup.procs").write_text(str(os.getpid()))
            knock(str(server.containers["peer"].folder / "socket"), written)
            os._exit(0)
        os.close(written)
        with os.fdopen(read) as end:
            text = await asyncio.to_thread(end.read)
        await asyncio.to_thread(os.waitpid, child, 0)
        return list(json.loads(text))
    finally:
        group.rmdir()


def knock(path: str, answer: int) -> None:
    """Register again and again; write how long each took."""
    frame = bytes(abi.Frame(magic=abi.FRAME_MAGIC, abi=abi.ABI, operation=abi.Operation.REGISTER))
    times = []
    for _ in range(REGISTRATIONS):
        began = time.perf_counter()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.connect(path)
            peer.send(frame)
            got = peer.recv(512)
        times.append(time.perf_counter() - began)
        assert abi.Frame.from_buffer_copy(got).operation == abi.Reply.OK
        time.sleep(0.005)
    os.write(answer, json.dumps(times).encode())


if __name__ == "__main__":
    sys.exit(main())

"""What a process uses, sampled at a fixed rate from the kernel's files."""

import os
import subprocess
import time
from pathlib import Path
from typing import IO, Any, NamedTuple

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Samples(NamedTuple):
    """Seconds on the monotonic clock; cores in use since the sample before; MiB in memory."""

    times: list[float]
    cpu_cores: list[float]
    memory_mib: list[float]


def watch(process: "subprocess.Popen[Any]", hertz: float) -> Samples:
    """Sample a process until it ends."""
    proc = Path("/proc") / str(process.pid)
    found = Samples([], [], [])
    before, then = 0, 0.0
    tick = time.monotonic()
    while process.poll() is None:
        try:
            used, memory = _cpu_ns(proc), _resident(proc)
        except (OSError, IndexError, ValueError):
            break  # it has ended meanwhile
        now = time.monotonic()
        if then:
            found.times.append(now)
            found.cpu_cores.append(max(0, used - before) / 1e9 / (now - then))
            found.memory_mib.append(memory / 2**20)
        before, then = used, now
        tick += 1 / hertz
        time.sleep(max(0.0, tick - time.monotonic()))
    process.wait()
    return found


def _cpu_ns(proc: Path) -> int:
    threads = (proc / "task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)


def _resident(proc: Path) -> int:
    return int((proc / "statm").read_text().split()[1]) * _PAGE


def start(command: list[str], out: IO[str]) -> "subprocess.Popen[Any]":
    """Start a process that writes its log to a file."""
    return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

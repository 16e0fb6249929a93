"""The figures of this process, as every exporter of Prometheus names them."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from alnair.serving.exposition import counter, gauge

_PROC = Path("/proc/self")


def process_figures() -> Iterator[str]:
    """The figures of this process, as every exporter names them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield counter(
        "process_cpu_seconds_total",
        "Processor time, user and system.",
        [({}, used.ru_utime + used.ru_stime)],
    )
    yield gauge(
        "process_max_fds", "Most open files.", [({}, resource.getrlimit(resource.RLIMIT_NOFILE)[0])]
    )
    if not (_PROC / "stat").is_file():
        return  # only Linux tells the rest without another package
    # The second field is the program's name in brackets, and may hold anything.
    fields = (_PROC / "stat").read_text().rpartition(")")[2].split()
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    yield gauge("process_virtual_memory_bytes", "Address space.", [({}, int(fields[20]))])
    yield gauge("process_resident_memory_bytes", "Memory in use.", [({}, int(fields[21]) * page)])
    yield gauge(
        "process_start_time_seconds",
        "When the process started, in seconds since the epoch.",
        [({}, _booted() + int(fields[19]) / ticks)],
    )
    yield gauge("process_open_fds", "Open files.", [({}, len(list((_PROC / "fd").iterdir())))])


def _booted() -> int:
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("btime "):
            return int(line.split()[1])
    return 0

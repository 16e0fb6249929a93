"""Who lives in a node's namespaces: not all of them carry the cluster's mark, but the kernel knows.

What is in the node's PID namespace ends with its PID 1. What entered only its other ones (a program
that was started in it waits outside for its child) ends a moment later.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

from alnair.local.components.processes import is_alive
from alnair.local.errors import LocalClusterError

_KINDS = ("mnt", "pid", "net", "ipc", "uts")
#: A killed process is gone when the kernel has cleaned up after it.
_GONE_SECONDS = 10.0
_POLL_SECONDS = 0.02
_TICKS = os.sysconf("SC_CLK_TCK")


class Namespaces(NamedTuple):
    """The namespaces that only a node has.

    Attributes:
        names: As the kernel calls them, by number: once a node has ended, another one's may get it.
        seen: Seconds since the machine's start by which they were the node's.
    """

    names: frozenset[str]
    seen: float


def of_node(pids: Iterable[int]) -> Namespaces:
    """The namespaces of the node's PID 1, if one of these processes is that.

    Only this one is sure to be in none that others on the machine have: it has all new ones.
    """
    seen = time.clock_gettime(time.CLOCK_BOOTTIME)
    found = {one for pid in pids if _is_first(pid) for one in _namespaces(str(pid))}
    return Namespaces(frozenset(found - _namespaces("self")), seen)


def living(wanted: Namespaces) -> list[psutil.Process]:
    """The processes that live in any of these namespaces since they were the node's.

    One that waits to be reaped does not.
    """
    if not wanted.names:
        return []
    return [
        process
        for process in psutil.process_iter()
        if _namespaces(str(process.pid)) & wanted.names
        and _began(process.pid) <= wanted.seen
        and is_alive(process)
    ]


async def gone(wanted: Namespaces, seconds: float = _GONE_SECONDS) -> None:
    """Wait until nothing lives in these namespaces any more.

    Raises:
        LocalClusterError: Something still does after this time.
    """
    until = time.monotonic() + seconds
    while left := await asyncio.to_thread(living, wanted):
        if time.monotonic() > until:
            pids = ", ".join(str(process.pid) for process in left)
            raise LocalClusterError(
                f"the real node was ended, but processes are left in its namespaces: {pids}:"
                " end them, then run the same command again"
            )
        await asyncio.sleep(_POLL_SECONDS)


def _is_first(pid: int) -> bool:
    """Whether it is PID 1 of a namespace below the one that it is seen from."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    line = next((line for line in status.splitlines() if line.startswith("NSpid:")), "")
    numbers = line.split()[1:]
    return len(numbers) > 1 and numbers[-1] == "1"


def _began(pid: int) -> float:
    """Seconds from the machine's start to the process's; infinite if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return float("inf")
    return int(stat.rpartition(")")[2].split()[19]) / _TICKS


def _namespaces(process: str) -> set[str]:
    found = set()
    for kind in _KINDS:
        with contextlib.suppress(OSError):
            found.add(str(Path(f"/proc/{process}/ns/{kind}").readlink()))
    return found

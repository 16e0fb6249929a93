"""Who lives in a node's namespaces: not all of them carry the cluster's mark, but the kernel knows.

What is in the node's PID namespace ends with its PID 1. What entered only its other ones (a program
that was started in it waits outside for its child) ends a moment later.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

import psutil

from alnair.local.components.processes import is_alive
from alnair.local.errors import LocalClusterError

_KINDS = ("mnt", "pid", "net", "ipc", "uts")
#: A killed process is gone when the kernel has cleaned up after it.
_GONE_SECONDS = 10.0
_POLL_SECONDS = 0.02


def of_node(pids: Iterable[int]) -> frozenset[str]:
    """The namespaces of the node's PID 1, if one of these processes is that.

    Only this one is sure to be in none that others on the machine have: it has all new ones.
    """
    found = {one for pid in pids if _is_first(pid) for one in _namespaces(str(pid))}
    return frozenset(found - _namespaces("self"))


def living(wanted: AbstractSet[str]) -> list[psutil.Process]:
    """The processes in any of these namespaces; one that waits to be reaped is not."""
    if not wanted:
        return []
    return [
        process
        for process in psutil.process_iter()
        if _namespaces(str(process.pid)) & wanted and is_alive(process)
    ]


async def gone(wanted: AbstractSet[str], seconds: float = _GONE_SECONDS) -> None:
    """Wait until nothing lives in these namespaces.

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


def _namespaces(process: str) -> set[str]:
    found = set()
    for kind in _KINDS:
        with contextlib.suppress(OSError):
            found.add(str(Path(f"/proc/{process}/ns/{kind}").readlink()))
    return found

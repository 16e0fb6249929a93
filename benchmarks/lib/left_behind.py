"""A benchmark's folder with a cluster in it, cleaned up however the benchmark ends.

SIGTERM and an interrupt clean up at once. After a kill, made-up pods end by themselves, and the
next run ends and removes the rest: cluster, agent, folders, control groups.
"""

import asyncio
import contextlib
import ctypes
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from alnair.local.controlplane import LocalCluster
from alnair.local.errors import LocalClusterError
from alnair.local.real_node import cgroups

_PREFIX: Final = "alnair-cost-"
#: In the folder: who made it, and what else is to be removed.
_OWNER: Final = "owner"
_GROUP: Final = re.compile(r"alnair-bench-(\d+)")
_SET_PARENT_DEATH_SIGNAL: Final = 1


@contextmanager
def scratch(cluster: str) -> Iterator[Path]:
    """Yield a folder with a short name, for sockets; first what killed runs left is removed."""
    remove_left_behind(cluster)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    (folder / _OWNER).write_text(f"{os.getpid()}\n")
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def also(folder: Path, other: Path) -> None:
    """Let a folder elsewhere be removed with this one."""
    with (folder / _OWNER).open("a") as file:
        file.write(f"{other}\n")


def remove_left_behind(cluster: str) -> None:
    """Remove what runs left that were killed: their clusters, of this name, and folders."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        lines = _lines(folder / _OWNER)
        if lines and _is_there(lines[0]):
            continue
        with contextlib.suppress(LocalClusterError):
            asyncio.run(LocalCluster(cluster, root=folder).down())
        end_those_of(folder)
        for one in (folder, *map(Path, lines[1:])):
            shutil.rmtree(one, ignore_errors=True)
    remove_groups()


def end_those_of(folder: Path) -> None:
    """Kill the processes that were told of a folder."""
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in one.read_bytes():
                os.kill(int(one.parent.name), signal.SIGKILL)


def remove_groups() -> None:
    """Remove the control groups of made-up pods whose benchmark is gone."""
    groups = {path.name for one in cgroups.hierarchies() for path in one.glob("alnair-bench-*")}
    for name in groups:
        found = _GROUP.fullmatch(name)
        if found is not None and not _is_there(found[1]):
            cgroups.remove(name)


def dies_with_us() -> None:
    """Let this process, which was just forked, be killed when its parent is."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def ends_when_told() -> None:
    """Let SIGTERM end the task that calls this, and with it all that it has begun."""
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _is_there(pid: str) -> bool:
    return Path(f"/proc/{pid}").exists()


def _lines(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return path.read_text().split("\n")[:-1]
    return []

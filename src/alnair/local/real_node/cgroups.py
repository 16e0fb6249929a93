"""The control groups of the node's pods: one below the root of each hierarchy, v1 or v2."""

import contextlib
import os
import time
from pathlib import Path

from alnair.local.errors import LocalClusterError

ROOT = Path("/sys/fs/cgroup")
#: A killed process leaves its group when the kernel has cleaned up after it.
_GONE_SECONDS = 10.0
#: The machine's other processes are in no group, so each would weigh as much as all pods together:
#: on a busy machine these would get next to no processor. They weigh as much as so many processes
#: for each processor; by version, the file and what a process has.
_PROCESSES = 2
_WEIGHTS = {"cpu.shares": 1024, "cpu.weight": 100}


def hierarchies(root: Path = ROOT) -> list[Path]:
    """The mounted hierarchies: of v2 the root itself, of v1 each folder in it."""
    if (root / "cgroup.controllers").exists():
        return [root]
    return [
        folder
        for folder in sorted(root.iterdir())
        if (folder / "cgroup.procs").exists() and not folder.is_symlink()
    ]


def make(name: str, root: Path = ROOT) -> None:
    """Makes a group in each hierarchy; one of v1 gets all CPUs and memory nodes, as it has none.

    Args:
        name: Of the group.
        root: Where the hierarchies are.
    """
    processes = _PROCESSES * (os.cpu_count() or 1)
    for hierarchy in hierarchies(root):
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        for limit in ("cpuset.cpus", "cpuset.mems"):
            file = group / limit
            if hierarchy != root and file.exists() and not file.read_text().strip():
                file.write_text((hierarchy / limit).read_text())
        for weight, one in _WEIGHTS.items():
            if (group / weight).exists():
                # 100 of them are the most that v2 knows.
                (group / weight).write_text(str(one * min(processes, 100)))


def remove(name: str, root: Path = ROOT) -> None:
    """Removes a group with all below it; its processes must have been ended.

    Raises:
        LocalClusterError: Processes are in it that do not end.
    """
    until = time.monotonic() + _GONE_SECONDS
    for hierarchy in hierarchies(root):
        while not _removed(hierarchy / name):
            if time.monotonic() > until:
                raise LocalClusterError(
                    f"processes are left in the control group {hierarchy / name}:"
                    f" end those in its cgroup.procs files, then run the same command again"
                )
            time.sleep(0.05)


def _removed(group: Path) -> bool:
    """Tries it; False while something is left."""
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    return not group.exists()

"""Commands and files of a real node, from outside of it."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from alnair.local.components import processes
from alnair.local.real_node import programs


def pid(cluster: Path) -> int:
    """The node's PID 1, as the machine has it."""
    running = processes.components(processes.find(cluster))[programs.NODE]
    return int(running.process.children()[0].pid)


def inside(cluster: Path) -> tuple[str, ...]:
    """The command that runs others in the node."""
    return programs.enter(pid(cluster))


def run(cluster: Path, *command: str) -> str:
    """Run a command in the node and return what it said."""
    found = subprocess.run(
        [*inside(cluster), *command], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, (command, found.stdout, found.stderr)
    return found.stdout


def root(cluster: Path) -> Path:
    """The node's files."""
    return Path(f"/proc/{pid(cluster)}/root")


def listed(cluster: Path, folders: Sequence[str]) -> list[str]:
    """All files below folders of the node."""
    at = root(cluster)
    # What goes in the middle of it is left out, which Path.rglob takes for an error.
    found = (
        os.path.relpath(Path(inside, name), at)
        for folder in folders
        for inside, below, files in os.walk(at / folder.lstrip("/"))
        for name in [*below, *files]
    )
    return sorted(found)

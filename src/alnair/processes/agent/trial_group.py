"""The control group of a program that `alnair agent run` runs, and those that were left behind."""

import contextlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

#: `alnair-`, and the name of the container: who runs it, and something of its own.
_NAME: Final = re.compile(r"alnair-(run-(\d+)-[0-9a-f]{6})")
#: Seconds for processes that were killed to leave it.
_PATIENCE: Final = 0.5
#: Seconds in which a group may have no process yet. Its maker may be in another pid namespace.
_NEW: Final = 60.0


def remove(group: Path) -> bool:
    """Remove a group; False while what the program left running is still in it."""
    until = time.monotonic() + _PATIENCE
    while True:
        with contextlib.suppress(OSError):
            group.rmdir()
        if not group.exists():
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.02)


def remove_left_behind(folder: Path, take_back: Callable[[str], None]) -> None:
    """Remove the groups of runs that were killed, once they are empty.

    Args:
        folder: In which the groups are.
        take_back: Takes the slices of a container back, by its name.
    """
    for group in sorted(folder.glob("alnair-run-*")):
        name = _NAME.fullmatch(group.name)
        if name is None or Path(f"/proc/{name[2]}").exists():
            continue
        try:
            if time.time() - group.stat().st_mtime < _NEW:
                continue
            os.rmdir(group)  # noqa: PTH106 (one that is in use stays)
        except OSError:
            continue
        take_back(name[1])

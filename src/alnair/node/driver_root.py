"""The node's own files, as an agent in a container sees them: below a folder such as /host.

What a container runtime is told must be named as the node names it; what the agent opens itself, as
it sees it. A link of the node leads to another path of the node, not of the container.
"""

import ctypes
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

#: What execvp imports, it must import before: Python's own files are not below the new root.
_ENTER: Final = """
import os, sys, warnings
os.chroot(sys.argv[1])
os.chdir("/")
os.execvp(sys.argv[2], sys.argv[2:])
"""
#: Links in a row after which a path counts as a circle, as in Linux.
_MOST_LINKS: Final = 40


def seen(root: Path, path: Path) -> Path:
    """Return where this process finds a path of the node."""
    return root / path.relative_to("/")


def real(root: Path, path: Path) -> Path:
    """Return the file of the node that a path of the node leads to.

    Raises:
        OSError: Links lead in a circle.
    """
    done, rest, links = Path("/"), list(path.parts[1:]), 0
    while rest:
        part = rest.pop(0)
        if part == "..":
            done = done.parent
            continue
        here = seen(root, done / part)
        if not here.is_symlink():
            done /= part
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(f"{path} leads in a circle of links")
        target = here.readlink()
        if target.is_absolute():
            done, rest = Path("/"), [*target.parts[1:], *rest]
        else:
            rest = [*target.parts, *rest]
    return done


def exists(root: Path, path: Path) -> bool:
    """Tell whether the node has a file at this path."""
    try:
        return seen(root, real(root, path)).exists()
    except OSError:
        return False


def command(root: Path, *words: str) -> tuple[str, ...]:
    """Return the command that runs a program of the node with the node's own libraries.

    In a container it changes its root first, which only root may. Files have the same names for it
    only where the container has mounted them at the node's places.
    """
    if root == Path("/"):
        return words
    return (sys.executable, "-ISc", _ENTER, str(root), *words)


def load(libraries: Iterable[Path]) -> None:
    """Load libraries by their paths, each after those that it needs.

    Whoever asks for one by its name alone then gets this one, whatever folders are searched.

    Raises:
        OSError: One cannot be loaded.
    """
    for path in libraries:
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)

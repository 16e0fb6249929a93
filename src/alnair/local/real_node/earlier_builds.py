"""Keeps what native/ is compiled to in the cache folder, for the next clone of the same sources.

That takes half a minute. A copy is kept for each state of the sources, of NVIDIA's headers and of
the compiler; wherever the clone was: nothing but debugging information tells it.
"""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

#: Copies that are kept: those used last.
KEPT = 4
#: Whose headers the fake GPU is generated from.
_HEADERS = ("nvidia-cuda-runtime", "nvidia-nvml-dev")


class EarlierBuilds:
    """The copies of a folder.

    Args:
        copies: Where they are kept.
        sources: The folder that the one is made from.
        built: The folder that is kept.
    """

    def __init__(self, copies: Path, sources: Path, built: Path) -> None:
        self._built = built
        self._copies = copies
        self._copy = copies / _digest(sources)

    def fetch(self) -> None:
        """Put the copy of these sources in place, if there is one, and nothing is in its place."""
        if self._built.exists() or not self._copy.exists():
            return
        fresh = self._built.with_name(f"{self._built.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(self._copy, fresh)
        # For make, all of it is as new as can be: newer than sources that were just checked out.
        now = time.time()
        for path in fresh.rglob("*"):
            os.utime(path, (now, now))
        os.utime(self._copy)
        fresh.rename(self._built)

    def keep(self) -> None:
        """Keep a copy of what was built, but for programs of tests."""
        if self._copy.exists():
            return
        self._copies.mkdir(parents=True, exist_ok=True)
        fresh = self._copy.with_name(f"{self._copy.name}.{os.getpid()}")
        shutil.copytree(self._built, fresh, ignore=shutil.ignore_patterns("clients"))
        try:
            fresh.rename(self._copy)
        except OSError:  # another clone was first
            shutil.rmtree(fresh)
        found = sorted(self._copies.iterdir(), key=_used)
        for old in found[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def _used(copy: Path) -> float:
    """Return when a copy was used last; before all others if another clone has just removed it."""
    try:
        return copy.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _digest(sources: Path) -> str:
    files = (path for path in sources.rglob("*") if path.is_file())
    found = hashlib.sha256("\0".join([_compiler(), *_versions()]).encode())
    for path in sorted(path for path in files if path.suffix != ".pyc"):
        name = path.relative_to(sources)
        found.update(f"\0{name}\0{path.stat().st_size}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:20]


def _compiler() -> str:
    """Return what the compiler says of itself; nothing where there is none, as make will tell."""
    try:
        asked = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return asked.stdout


def _versions() -> Iterable[str]:
    for package in _HEADERS:
        try:
            yield metadata.version(package)
        except metadata.PackageNotFoundError:
            yield ""

"""Keeps the built libraries in the cache folder, so that a fresh clone need not compile them anew.

That takes half a minute, for which all tests wait that need a GPU. A copy is kept for each state of
the sources, of NVIDIA's headers and of the compiler.
"""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from alnair.local.layout import cache_folder

#: Copies that are kept: those used last.
KEPT = 4


class Copies:
    """The copies of a folder of built libraries.

    Args:
        folder: Where they are built.
        sources: All files that they are made of.
    """

    def __init__(self, folder: Path, sources: Iterable[Path]) -> None:
        self._folder = folder
        self._copies = cache_folder(os.environ) / "native-tests"
        self._copy = self._copies / _digest(sources)

    def fetch(self) -> None:
        """Put the copy of these sources into the folder, if there is one and the folder is not."""
        if self._folder.exists() or not self._copy.exists():
            return
        fresh = self._folder.with_name(f"{self._folder.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(self._copy, fresh)
        # For make, all of it is as new as can be: newer than sources that were just checked out.
        now = time.time()
        for path in fresh.rglob("*"):
            os.utime(path, (now, now), follow_symlinks=False)
        os.utime(self._copy)
        fresh.rename(self._folder)

    def keep(self) -> None:
        """Keep a copy of what was built, but for the programs of tests."""
        if self._copy.exists():
            return
        self._copies.mkdir(parents=True, exist_ok=True)
        fresh = self._copy.with_name(f"{self._copy.name}.{os.getpid()}")
        shutil.copytree(self._folder, fresh, ignore=shutil.ignore_patterns("clients"))
        fresh.rename(self._copy)
        found = sorted(self._copies.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in found[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def _digest(sources: Iterable[Path]) -> str:
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True)
    found = hashlib.sha256(compiler.stdout.encode())
    for path in sorted(sources):
        # Wherever the clone is: debugging information alone tells that.
        found.update(f"\0{path.parent.name}/{path.name}\0{path.stat().st_size}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:20]

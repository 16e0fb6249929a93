"""Which tests passed with this C code: what is slow need not run again until something changes.

A note for each pass is kept in the cache folder, which fresh clones on this machine share. Its name
is a digest of the sources, of the tests and of the compiler.
"""

import contextlib
import datetime as dt
import hashlib
import os
import platform
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from alnair.local.layout import cache_folder
from native.build import CLIENTS, ROOT

#: Notes are dropped after so many seconds: a month.
KEPT = 30 * 86_400.0
_SUFFIXES = {".c", ".h", ".mk", ".py", ".tsv"}


class Passes:
    """The passes of one part.

    Args:
        part: Its name.
        tests: The files that it runs, beside the C code and what tests of it share.
    """

    def __init__(self, part: str, tests: Iterable[Path] = ()) -> None:
        self._folder = cache_folder(os.environ) / "native-passed"
        self._note = self._folder / f"{part}-{_digest(part, tests)}"

    def when(self) -> str:
        """The date on which it passed as it is now; empty if it never did."""
        return self._note.read_text().strip() if self._note.exists() else ""

    def note(self) -> None:
        """It has passed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for old in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another clone was first
                if time.time() - old.stat().st_mtime > KEPT:
                    old.unlink()
        fresh = self._note.with_name(f"{self._note.name}.{os.getpid()}")
        fresh.write_text(f"{dt.datetime.now(dt.UTC).date().isoformat()}\n")
        fresh.rename(self._note)


def _digest(part: str, tests: Iterable[Path]) -> str:
    native = CLIENTS.parent
    files = [path for path in (ROOT / "native").rglob("*") if _counts(path)]
    files += [path for path in CLIENTS.iterdir() if _counts(path)]
    files += [path for path in native.glob("*.py") if not path.name.startswith("test_")]
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True)
    found = hashlib.sha256(f"{part}\0{compiler.stdout}\0{platform.libc_ver()}\0".encode())
    for path in sorted({*files, *tests}):
        found.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:32]


def _counts(path: Path) -> bool:
    profile = "profiles" in path.parts and path.is_file()
    return path.suffix in _SUFFIXES or path.name == "Makefile" or profile

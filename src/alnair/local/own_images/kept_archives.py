"""Archives of images that stay in the cache, which all checkouts of a machine share.

One that another checkout uses must not go because this one has built its own.
"""

import os
from collections.abc import Iterable
from pathlib import Path


def note_use(archive: Path) -> None:
    """Have an archive count as used now; it is a file or a folder."""
    os.utime(archive)


def unused(archives: Iterable[Path], kept: int) -> list[Path]:
    """Return those that may go: all but so many that were used last."""
    return sorted(archives, key=lambda path: path.stat().st_mtime)[:-kept]

"""What names a history in a database; told without the packages that open one."""

from pathlib import Path
from typing import Final

#: Kinds of databases.
SCHEMES: Final = ("sqlite", "postgresql")
#: First bytes of a file of SQLite.
_MAGIC: Final = b"SQLite format 3\0"


class HistoryError(Exception):
    """A history cannot be opened, read or written; says which, why, and what to do."""


def is_history(name: str) -> bool:
    """Whether a name is the URL of a database, or the path of a SQLite file."""
    if name.startswith(tuple(f"{scheme}{end}" for scheme in SCHEMES for end in (":", "+"))):
        return True
    try:
        with Path(name).open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False

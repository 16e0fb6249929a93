"""Files that are there whole or not at all, however the writer ends."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def write(path: Path, data: bytes) -> None:
    """Write a file; what was there is replaced at once or, if this fails, not at all.

    A device or a pipe, such as /dev/null, is written to and stays what it is.

    Raises:
        OSError: it cannot be written; its `filename` says which file.
    """
    with naming(path):
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        beside = path.with_name(f".{path.name}.part")
        try:
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have an error of the system name what was written: that of a full disk names nothing."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise

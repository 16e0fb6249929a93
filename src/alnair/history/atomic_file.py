"""Files that are there whole or not at all, however the writer ends."""

import os
from pathlib import Path


def write(path: Path, data: bytes) -> None:
    """Write a file; what was there is replaced at once or, if this fails, not at all.

    A device or a pipe, such as /dev/null, is written to and stays what it is.

    Raises:
        OSError: it cannot be written.
    """
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

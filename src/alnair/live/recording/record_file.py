"""A record on disk: lines of JSON, appended and synced in batches.

Whoever writes it may be killed at any moment: at worst the last line is cut short, which a reader
passes over and the next writer cuts off. Only one may write at a time.
"""

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from alnair.live.recording.recorded_cluster import Known, Line

_encode = msgspec.json.Encoder().encode
_BLOCK = 1 << 16


class RecordError(Exception):
    """A record that cannot be read or written; the message says which, where, and what to do."""


def load(path: Path) -> Known:
    """Return what a record says; a line that is being written is left out.

    Raises:
        RecordError: it cannot be read, is not a record, or is damaged.
    """
    known = Known()
    decode = msgspec.json.Decoder(Line).decode
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if not text.endswith(b"\n"):
                    break
                try:
                    line = decode(text)
                except msgspec.MsgspecError as error:
                    raise RecordError(f"{path}, line {number}: {error}: it is damaged") from error
                if number == 1 and line.head is None:
                    break
                known.take(line)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordError(f"{path}: cannot be read ({reason}): check the path") from error
    if known.head is None:
        raise RecordError(
            f"{path}: this is not a record: make one with 'alnair report scheduling --record FILE'"
        )
    return known


class RecordFile:
    """A record that is open for appending, for one writer.

    Raises:
        RecordError: another one writes it, or it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            is_new = not path.exists()
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            if is_new:
                _sync_folder(path.resolve().parent)
        except OSError as error:
            reason = error.strerror or str(error)
            raise RecordError(f"{path}: cannot be written ({reason}): check the path") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise RecordError(
                f"{path}: somebody records into it now: end that, or name another file"
            ) from error

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it, which lets others write."""
        os.close(self._fd)

    def begin(self) -> Known:
        """Return what was recorded before; what a killed writer left of a line is cut off.

        Raises:
            RecordError: it is something else, or is damaged.
        """
        whole = self._whole()
        if whole < os.fstat(self._fd).st_size:
            if not whole:
                self._check_head()
            os.ftruncate(self._fd, whole)
        return load(self.path) if whole else Known()

    def append(self, lines: Iterable[Line]) -> None:
        """Write lines and wait until they are safe.

        Raises:
            OSError: the disk is full or broken.
        """
        data = b"".join(_encode(line) + b"\n" for line in lines)
        before = os.fstat(self._fd).st_size
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            os.ftruncate(self._fd, before)
            raise
        os.fsync(self._fd)

    def _whole(self) -> int:
        """Return how many bytes are whole lines."""
        end = os.fstat(self._fd).st_size
        while end:
            begin = max(end - _BLOCK, 0)
            found = os.pread(self._fd, end - begin, begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
        return 0

    def _check_head(self) -> None:
        """Refuse a file without a line that is not the begin of a record."""
        if not os.pread(self._fd, 5, 0).startswith(b'{"t":'[: os.fstat(self._fd).st_size]):
            raise RecordError(
                f"{self.path}: this is not a record: name a file that does not exist yet"
            )


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

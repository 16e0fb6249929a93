"""What the server must know again after its own restart: the containers, and what it learned.

One file, replaced as a whole: written beside, flushed, renamed. So at every moment, whatever kills
the server, there is the old journal or the new one. What runs, the kernel knows, and what is used
stands in the counters; neither is written here.
"""

import contextlib
import os
import zlib
from pathlib import Path
from typing import Final

import msgspec

from alnair.node.vgpu.containers.container_slices import ContainerSlices

_MAGIC: Final = b"alnair-vgpu-journal"
VERSION: Final = 1


class JournalError(Exception):
    """The journal cannot be read or is not ours; says which file and what to do."""


class ControlGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """The control group of a container, as its first process showed it.

    Attributes:
        path: Of the group that all of the container's processes are in or below.
        controller: Hierarchy of the path; "" is v2.
        container: The runtime's id; "" where it is no runtime's.
    """

    path: str
    controller: str = ""
    container: str = ""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A container; `group` is None while nobody has registered."""

    assignment: ContainerSlices
    generation: int
    group: ControlGroup | None = None
    message: str = ""
    suspended: bool = False


def encode(entries: tuple[Entry, ...]) -> bytes:
    """Return the text of a journal: a line with version, checksum and length, and JSON."""
    body = msgspec.json.encode(entries)
    return b"%s %d %08x %d\n%s\n" % (_MAGIC, VERSION, zlib.crc32(body), len(body), body)


def decode(data: bytes, name: str = "journal") -> tuple[Entry, ...]:
    """Read a journal's text.

    Raises:
        JournalError: It is damaged, or of another version.
    """
    head, _, rest = data.partition(b"\n")
    words = head.split(b" ")
    if len(words) != 4 or words[0] != _MAGIC:
        raise JournalError(f"{name} is not a journal of the vGPU server: move it away")
    if words[1] != b"%d" % VERSION:
        raise JournalError(
            f"{name} is of version {words[1].decode(errors='replace')}, this server knows {VERSION}"
        )
    body = rest[:-1]
    if words[3] != b"%d" % len(body) or words[2] != b"%08x" % zlib.crc32(body):
        raise JournalError(f"{name} is damaged (its checksum differs): move it away")
    try:
        return msgspec.json.decode(body, type=tuple[Entry, ...])
    except msgspec.DecodeError as error:
        raise JournalError(f"{name} does not fit this server: {error}") from error


class Journal:
    """The journal in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal"
        self._written = b""

    def load(self) -> tuple[Entry, ...]:
        """Read it; empty if there is none.

        Raises:
            JournalError: It cannot be used.
        """
        # What a server wrote that was killed before the rename was never in force.
        with contextlib.suppress(FileNotFoundError):
            self.path.with_suffix(".new").unlink()
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise JournalError(f"{self.path}: {error.strerror}") from error
        entries = decode(data, str(self.path))
        self._written = data
        return entries

    def save(self, entries: tuple[Entry, ...]) -> None:
        """Replace it, if it changed.

        Raises:
            OSError: It cannot be written; the old one is in force.
        """
        data = encode(entries)
        if data == self._written:
            return
        replace(self.path, data)
        self._written = data


def replace(path: Path, data: bytes) -> None:
    """Replace a file as a whole.

    Raises:
        OSError: It cannot be written; the old one is in force.
    """
    new = path.with_suffix(".new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)
    new.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

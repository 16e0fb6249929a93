"""Which libraries of the driver a process with a slice has mapped beside our proxy.

A process that registered by the proxy and then loads a driver library of its own, copied or brought
along, gets memory and time past its account. The kernel says which files a process has mapped as
code. Looked at are those named `libcuda.so…`: whoever renames a copy, or calls the driver that the
proxy itself has loaded by its address, is not seen here, but by what the driver charges to it.

A process without our proxy is not judged: its library was replaced by a later one since, or it is
limited by the preloaded one, or has not registered, which is a violation of its own.
"""

import contextlib
import mmap
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

#: Where the proxy finds the node's driver in a container.
DRIVER: Final = "/run/alnair/driver/libcuda.so.1"
#: Seconds after which a process is looked at again.
AGAIN: Final = 1.0
#: Processes that are looked at per call: the kernel takes a millisecond for a thousand mappings.
AT_ONCE: Final = 8
_NAME: Final = "libcuda.so"
_DELETED: Final = " (deleted)"


class FileId(NamedTuple):
    """A file as the kernel names it in a list of mappings; `stat` has other devices on some."""

    device: str
    inode: int


class Process(NamedTuple):
    """A process that is not taken for a later one of the same number; `started` in clock ticks."""

    pid: int
    started: int


class _Seen(NamedTuple):
    at: float
    beside: str
    since: float


def drivers(maps: str) -> dict[FileId, str]:
    """Read from /proc/PID/maps the driver's libraries that are mapped as code, with their paths."""
    found = {}
    for line in maps.splitlines():
        # range, rights, offset, device, inode, path
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and "x" in fields[1] and _NAME in fields[5].rpartition("/")[2]:
            found[FileId(fields[3], int(fields[4]))] = fields[5].removesuffix(_DELETED)
    return found


def beside(mapped: Mapping[FileId, str], proxies: Iterable[FileId]) -> str:
    """Return the path of a driver library that has no business beside the proxy, or ""."""
    others = {one: path for one, path in mapped.items() if one not in frozenset(proxies)}
    if len(others) == len(mapped):
        return ""
    return next((path for path in sorted(others.values()) if path != DRIVER), "")


def file_id(path: Path) -> FileId:
    """Return how the kernel names a file in lists of mappings.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        inode, resolved = path.stat().st_ino, str(path.resolve())
        for line in Path("/proc/self/maps").read_text().splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and int(fields[4]) == inode and fields[5] == resolved:
                return FileId(fields[3], inode)
    raise OSError(f"{path} was replaced while it was looked at: try again")


class DriverMappings:
    """Looks at mappings in a thread: the kernel may make a reader wait for who is looked at.

    Args:
        proxies: The files that are mounted into containers as `libcuda.so.1`.
        folder: Another /proc, for tests.
    """

    def __init__(self, proxies: Iterable[FileId], folder: Path = Path("/proc")) -> None:
        self._proxies = frozenset(proxies)
        self._folder = folder
        self._seen: dict[Process, _Seen] = {}
        self._thread: threading.Thread | None = None

    def look(self, processes: Iterable[Process], now: float) -> None:
        """Look at those whose turn it is, beside; the others are forgotten if they are not named.

        Args:
            processes: All that use a GPU by a slice.
            now: Monotonic seconds.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        before, named = self._seen, set(processes)
        self._seen = {process: seen for process, seen in before.items() if process in named}
        last = {one: self._seen[one].at if one in self._seen else float("-inf") for one in named}
        due = sorted((one for one in named if now - last[one] >= AGAIN), key=lambda one: last[one])
        if due:
            self._thread = threading.Thread(
                target=self._read, args=(due[:AT_ONCE], now), daemon=True
            )
            self._thread.start()

    def beside(self, process: Process) -> tuple[str, float]:
        """Return which driver library a process has beside the proxy, and since when it is known.

        "" where it has none, or has not been looked at.
        """
        seen = self._seen.get(process)
        return (seen.beside, seen.since) if seen is not None else ("", 0.0)

    def wait(self) -> None:
        """Wait until what was begun is done, for tests."""
        if self._thread is not None:
            self._thread.join()

    def _read(self, due: list[Process], now: float) -> None:
        for process in due:
            maps = ""
            with contextlib.suppress(OSError):
                maps = (self._folder / str(process.pid) / "maps").read_text(errors="replace")
            found, old = beside(drivers(maps), self._proxies), self._seen.get(process)
            is_known = old is not None and old.beside
            self._seen[process] = _Seen(now, found, old.since if old and is_known else now)

"""Files of the kernel that are read again and again: kept open, and read from their begin.

To open a file of a control group costs several times what reading it does.
"""

import contextlib
import os
import resource
from typing import Final

#: Bytes of a file that are read; `memory.stat` has 2 KiB, `io.stat` 100 a disk.
_MOST_BYTES: Final = 1 << 14
#: Descriptors that others in this process may need.
_LEFT: Final = 512
#: And those that are kept at most: 1,000 containers on v2.
_MOST: Final = 10_000


def room(most: int = _MOST) -> int:
    """Return how many files may be kept open; the process's own limit is raised if it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = most + _LEFT if hard == unlimited else min(most + _LEFT, hard)
    if soft != unlimited and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return most if soft == unlimited else max(0, min(most, soft - _LEFT))


class KeptFiles:
    """Reads files; keeps them open as far as there is room, those that came first.

    Args:
        most: Descriptors; the other files are opened for each reading.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, path: str) -> bool:
        return path in self._open

    def read(self, path: str) -> bytes | None:
        """Return what a file says now; None if there is no such file."""
        fd = self._open.get(path)
        if fd is not None:
            try:
                return os.pread(fd, _MOST_BYTES, 0)
            except OSError:
                self.close(path)  # the group was removed; it may have been made anew
        return self._first(path)

    def _first(self, path: str) -> bytes | None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            text = os.pread(fd, _MOST_BYTES, 0)
        except OSError:
            os.close(fd)
            return None
        if len(self._open) < self._most:
            self._open[path] = fd
        else:
            os.close(fd)
        return text

    def close(self, path: str) -> None:
        """Let go of a file."""
        if (fd := self._open.pop(path, None)) is not None:
            os.close(fd)

    def close_all(self) -> None:
        """Let go of all."""
        for path in list(self._open):
            self.close(path)

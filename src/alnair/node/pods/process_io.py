"""Bytes that a container's processes read from disks and wrote to them, by `/proc/PID/io`.

For kernels that count no disks by control groups: v1 counts a disk only where somebody limits it.
What a process had is added to its parent's when that has waited for it, so that the sum over all
that live is what the container had; what nobody waited for is lost, and so is what lies in groups
below the container's own. Bytes count for who made pages dirty, when that was done, and not for
who wrote them out; those of a file that is removed before are taken back.

Source: task_io_accounting_ops.h and do_io_accounting (fs/proc/base.c) of the Linux kernel.
"""

import re
from typing import Final

from alnair.node.cgroups import Proc
from alnair.node.pods.cgroup_files import after
from alnair.node.pods.kept_files import KeptFiles

#: Processes of a container that are asked at most.
_MOST: Final = 64
#: Disks, and neither their partitions nor what is made of them.
_DISK: Final = re.compile(rb"(?:[svh]d|xvd)[a-z]+|nvme\d+n\d+|mmcblk\d+")


def used_disks(diskstats: bytes) -> list[bytes]:
    """Return MAJOR:MINOR of the disks that were read or written, by the text of /proc/diskstats.

    Source: Documentation/admin-guide/iostats.rst of the Linux kernel: sectors are fields 3 and 7.
    """
    lines = [line.split() for line in diskstats.splitlines()]
    return [
        b"%b:%b" % (words[0], words[1])
        for words in lines
        if len(words) > 9 and _DISK.fullmatch(words[2]) and (int(words[5]) or int(words[9]))
    ]


class ProcessIo:
    """Adds up.

    Args:
        proc: This machine's.
        files: Keeps the files open.
    """

    def __init__(self, proc: Proc, files: KeptFiles) -> None:
        self._proc = proc
        self._files = files
        #: File of the processes of a group → their pids, and the largest sums so far.
        self._known: dict[str, tuple[bytes, tuple[str, ...], tuple[int, int]]] = {}

    def read(self, procs: str) -> tuple[int, int] | None:
        """Return bytes (read, written) of a container; None if that is not counted.

        Args:
            procs: The file `cgroup.procs` of its group.
        """
        text = self._files.read(procs)
        if text is None:
            return None
        before, paths, most = self._known.get(procs, (b"", (), (0, 0)))
        if text != before:
            paths_now = tuple(str(self._proc.path(f"{int(p)}/io")) for p in text.split()[:_MOST])
            for path in set(paths) - set(paths_now):
                self._files.close(path)
            paths = paths_now
        read, written, is_counted = 0, 0, bool(most[0] or most[1])
        for path in paths:
            said = self._files.read(path)
            if said is None or (fetched := after(said, b"read_bytes:")) is None:
                continue  # it has ended meanwhile
            is_counted = True
            read += fetched
            written += after(said, b"write_bytes:") or 0
            written -= after(said, b"cancelled_write_bytes:") or 0
        # One that nobody waited for takes what it had with it.
        sums = max(read, most[0]), max(written, most[1])
        self._known[procs] = text, paths, sums
        return sums if is_counted else None

    def forget(self, procs: str) -> None:
        """Let go of a container."""
        known = self._known.pop(procs, None)
        for path in known[1] if known is not None else ():
            self._files.close(path)
        self._files.close(procs)

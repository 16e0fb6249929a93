"""What containers have written, from the files that the runtime keeps beside the kubelet.

The kubelet's folder of logs has a folder for each pod, and in it one for each container, with a
file for each of its starts. A file that grew large is renamed and begun anew.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

#: Where the kubelet keeps them, unless its configuration says otherwise (`podLogsDir`).
FOLDER: Final = Path("/var/log/pods")
#: Bytes that are read of a container at a time; of what is more, the newest are.
MOST: Final = 1 << 20
_START: Final = re.compile(r"(\d+)\.log")
_HEAD: Final = re.compile(rb"(\S+) (?:stdout|stderr) ([FP])(?::\S+)? ?")


class Written(msgspec.Struct, frozen=True):
    """A line, or a part of one.

    Attributes:
        at: When, as the runtime says, RFC 3339.
        data: What, with its end of line where it has one.
    """

    at: str
    data: bytes


class _Place(msgspec.Struct):
    """How far a container's log was read."""

    inode: int = 0
    offset: int = 0


class ContainerLogs:
    """Reads on where it stopped.

    Args:
        folder: The kubelet's, as seen from here.
        most: Bytes of a container at a time.
    """

    def __init__(self, folder: Path = FOLDER, most: int = MOST) -> None:
        self._folder = folder
        self._most = most
        self._places: dict[tuple[str, str], _Place] = {}

    def keep(self, pods: set[str]) -> None:
        """Forget the containers of all pods but those with these uids."""
        self._places = {key: place for key, place in self._places.items() if key[0] in pods}

    def read(self, namespace: str, pod: str, uid: str, container: str) -> Iterator[Written]:
        """Return what came since the last time; nothing where there is no log.

        Args:
            namespace: Of the pod.
            pod: Its name.
            uid: As the kubelet knows it.
            container: Its name.
        """
        place = self._places.setdefault((uid, container), _Place())
        folder = self._folder / f"{namespace}_{pod}_{uid}" / container
        for path in _unread(folder, place):
            yield from self._file(path, place)

    def _file(self, path: str, place: _Place) -> Iterator[Written]:
        try:
            with open(path, "rb") as file:  # noqa: PTH123 (a path of scandir)
                status = os.fstat(file.fileno())
                if status.st_ino != place.inode or status.st_size < place.offset:
                    place.inode, place.offset = status.st_ino, 0
                skipped = status.st_size - place.offset - self._most
                if skipped > 0:
                    place.offset += skipped
                file.seek(place.offset)
                data = file.read(self._most)
        except OSError:
            return  # it was taken away meanwhile
        if skipped > 0:  # it begins within a line
            cut = data.find(b"\n") + 1
            place.offset += cut
            data = data[cut:]
        whole = data.rfind(b"\n") + 1
        place.offset += whole
        for line in data[:whole].splitlines(keepends=True):
            if head := _HEAD.match(line):
                rest = line[head.end() :]
                is_part = head[2] == b"P"
                yield Written(head[1].decode(errors="replace"), rest[:-1] if is_part else rest)


def _unread(folder: Path, place: _Place) -> list[str]:
    """Return the files that may have something new, in order."""
    starts: dict[int, str] = {}
    old = ""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if place.inode and entry.inode() == place.inode:
                    old = entry.path
                if found := _START.fullmatch(entry.name):
                    starts[int(found[1])] = entry.path
    except OSError:
        return []
    if not starts:
        return []
    current = starts[max(starts)]
    # What was read last has been renamed, or is of a start before: first the rest of it.
    return [old, current] if old and old != current else [current]

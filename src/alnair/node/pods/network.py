"""What a pod sent and received, by the file `net/dev` of one of its processes.

All processes of a pod have one network. A pod in the host's network has none of its own, and what
the file says then is the node's.
"""

import contextlib
import os
from collections.abc import Iterable
from typing import Final

import msgspec

from alnair.node.cgroups import Proc
from alnair.node.pods.kept_files import KeptFiles
from alnair.profiler.samples import NetworkSample

#: Interfaces that carry what the pod says to itself.
_OWN: Final = (b"lo",)


def parse(text: bytes) -> tuple[int, int] | None:
    """Return bytes (received, sent) over all interfaces but loopback; None if it is no `net/dev`.

    Source: net/core/net-procfs.c of the Linux kernel: field 1 is received, field 9 sent.
    """
    lines = text.splitlines()
    if len(lines) < 2 or b"Receive" not in lines[0]:
        return None
    received = sent = 0
    for line in lines[2:]:
        name, _, rest = line.partition(b":")
        words = rest.split()
        if name.strip() not in _OWN and len(words) >= 9:
            received += int(words[0])
            sent += int(words[8])
    return received, sent


class _Source(msgspec.Struct, frozen=True):
    """Where a pod's network is read.

    Attributes:
        members: Folders of the pod's groups, when it was found.
        path: Of the file; "": it has no network of its own.
        namespace: Inode of its network.
        pid: Of the process whose file it is.
    """

    members: frozenset[str]
    path: str
    namespace: int
    pid: int


class PodNetworks:
    """Reads them; an open file keeps a pod's network readable when the process is gone.

    Args:
        proc: This machine's.
        files: Keeps the files open.
    """

    def __init__(self, proc: Proc, files: KeptFiles) -> None:
        self._proc = proc
        self._files = files
        self._sources: dict[str, _Source] = {}
        #: What was read last of each pod, and what it says.
        self._read: dict[str, tuple[bytes, tuple[int, int] | None]] = {}
        #: Networks that are none of a pod's; who may not look at process 1 lives beside it mostly.
        self._node = {self._namespace(1), self._namespace("self")} - {0}

    def read(
        self, uid: str, members: frozenset[str], pids: Iterable[int], now: float
    ) -> NetworkSample | None:
        """Return a pod's counters; None if it has no network of its own, or no process.

        Args:
            uid: The pod's.
            members: Its groups; when they change, its network may have been made anew.
            pids: Of its processes; asked for only if need be.
            now: Seconds, monotonic.
        """
        source = self._sources.get(uid)
        if source is None or source.members != members:
            source = self._find(uid, members, pids)
        if source is None or not source.path:
            return None
        if source.path not in self._files and self._namespace(source.pid) != source.namespace:
            self._drop(uid)  # the process has ended, and its pid may be another's
            return None
        text = self._files.read(source.path)
        before, found = self._read.get(uid, (None, None))
        if text != before:
            found = parse(text) if text is not None else None
            self._read[uid] = text or b"", found
        if text is None or found is None:
            self._drop(uid)
            return None
        return NetworkSample(now, *found)

    def keep(self, uids: Iterable[str]) -> None:
        """Forget all pods but these."""
        for uid in self._sources.keys() - set(uids):
            self._drop(uid)

    def _find(self, uid: str, members: frozenset[str], pids: Iterable[int]) -> _Source | None:
        old = self._sources.get(uid)
        for pid in pids:
            namespace = self._namespace(pid)
            if not namespace:
                continue
            if old is not None and old.namespace == namespace:
                made = msgspec.structs.replace(old, members=members)
            else:
                self._drop(uid)
                path = "" if namespace in self._node else str(self._proc.path(f"{pid}/net/dev"))
                made = _Source(members, path, namespace, pid)
            self._sources[uid] = made
            return made
        return old

    def _drop(self, uid: str) -> None:
        self._read.pop(uid, None)
        source = self._sources.pop(uid, None)
        if source is not None and source.path:
            self._files.close(source.path)

    def _namespace(self, pid: int | str) -> int:
        with contextlib.suppress(OSError):
            return os.stat(self._proc.path(f"{pid}/ns/net")).st_ino  # noqa: PTH116 (on a warm path)
        return 0

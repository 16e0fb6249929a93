"""A folder in which what pods used waits until somebody has kept it.

Each ended pod is one file, one line of JSON, with its number as name: written beside, flushed,
renamed. A number is never given twice. So at every moment, whatever kills the process, a file is
there whole or not at all. What nobody fetches is thrown away, the oldest first, and counted.

`stream` says which folder it is; `state` holds how far it was kept. `running` has the books of the
pods that run, for the agent after this one.
"""

import contextlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from alnair.model.usage import PodUsage
from alnair.node.vgpu.containers.journal import replace

#: What is kept at most: pods, bytes, and seconds.
MOST_PODS: Final = 20_000
MOST_BYTES: Final = 256 << 20
MOST_AGE: Final = 14 * 86_400.0
_SUFFIX: Final = ".json"


class OutboxError(Exception):
    """The folder cannot be used; says why and what to do."""


class _State(msgspec.Struct, frozen=True):
    """How far it is: what was kept, the last number that was given, and what was thrown away."""

    stream: str
    acked: int = 0
    last: int = 0
    dropped: int = 0


class UsageOutbox:
    """The folder.

    Args:
        folder: Made if it is not there.
        make_stream: Gives the name of a new stream, such as a random one.
        now: Seconds since the epoch.
        most_pods: What is kept at most,
        most_bytes: in all,
        most_age: and seconds.

    Raises:
        OutboxError: It cannot be used.

    Attributes:
        dropped: Pods that were thrown away, or could not be written, so far.
    """

    def __init__(
        self,
        folder: Path,
        make_stream: Callable[[], str],
        now: Callable[[], float],
        *,
        most_pods: int = MOST_PODS,
        most_bytes: int = MOST_BYTES,
        most_age: float = MOST_AGE,
    ) -> None:
        self._folder = folder
        self._now = now
        self._most = most_pods, most_bytes, most_age
        #: Number → (bytes, when it was written), ascending.
        self._there: dict[int, tuple[int, float]] = {}
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._read_folder()
            self._state = self._read_state() or _State(make_stream())
            last = max([self._state.last, self._state.acked, *self._there])
            self._state = msgspec.structs.replace(self._state, last=last)
            self._write_state()
        except OSError as error:
            raise OutboxError(
                f"{folder}: {error.strerror or error}; what pods used is not kept: make it a "
                "folder that the agent can write"
            ) from error
        for seq in [seq for seq in self._there if seq <= self._state.acked]:
            self._remove(seq)

    @property
    def stream(self) -> str:
        """Which folder it is."""
        return self._state.stream

    @property
    def last(self) -> int:
        """The largest number that was given; 0: none."""
        return self._state.last

    @property
    def dropped(self) -> int:
        """Pods that were thrown away so far."""
        return self._state.dropped

    def __len__(self) -> int:
        return len(self._there)

    @property
    def size(self) -> int:
        """Bytes of all that waits."""
        return sum(size for size, _ in self._there.values())

    def add(self, usage: PodUsage) -> int:
        """Keep one; return its number.

        Raises:
            OSError: It cannot be written, and it is not there.
        """
        seq = self._state.last + 1
        line = msgspec.json.encode(usage) + b"\n"
        replace(self._path(seq), line)
        self._there[seq] = len(line), self._now()
        self._state = msgspec.structs.replace(self._state, last=seq)
        self._make_room()
        return seq

    def lose(self) -> None:
        """Count one that could not be kept."""
        self._state = msgspec.structs.replace(self._state, dropped=self._state.dropped + 1)

    def after(self, seq: int, most: int) -> list[tuple[int, PodUsage]]:
        """Return those behind a number, the oldest first.

        Args:
            seq: The number.
            most: How many.
        """
        found: list[tuple[int, PodUsage]] = []
        for one in [one for one in self._there if one > seq]:
            if len(found) == most:
                break
            try:
                found.append(
                    (one, msgspec.json.decode(self._path(one).read_bytes(), type=PodUsage))
                )
            except (OSError, msgspec.MsgspecError):
                self._drop(one)  # somebody else was here
        return found

    def ack(self, upto: int) -> int:
        """Forget those up to a number: somebody has kept them. Return how many those were.

        Raises:
            OSError: It cannot be written down; nothing is forgotten.
        """
        before = self._state
        self._state = msgspec.structs.replace(before, acked=max(before.acked, upto))
        try:
            self._write_state()
        except OSError:
            self._state = before
            raise
        gone = [seq for seq in self._there if seq <= upto]
        for seq in gone:
            self._remove(seq)
        return len(gone)

    def uids(self) -> set[str]:
        """Return the pods that wait."""
        return {usage.uid for _, usage in self.after(0, len(self._there))}

    def save_running(self, data: bytes) -> None:
        """Keep the books of those that run; what was there is replaced.

        Raises:
            OSError: It cannot be written, and what was there is.
        """
        replace(self._folder / "running", b"%08x\n" % zlib.crc32(data) + data)

    def running(self) -> bytes | None:
        """Return them; None: there are none that can be used."""
        try:
            head, _, data = (self._folder / "running").read_bytes().partition(b"\n")
        except OSError:
            return None
        return data if head == b"%08x" % zlib.crc32(data) else None

    def _path(self, seq: int) -> Path:
        return self._folder / f"{seq:020}{_SUFFIX}"

    def _read_folder(self) -> None:
        for path in sorted(self._folder.iterdir()):
            if path.suffix == ".new":
                # What was written when the process was killed was never in force.
                path.unlink(missing_ok=True)
            elif path.suffix == _SUFFIX and path.stem.isdecimal():
                status = path.stat()
                self._there[int(path.stem)] = status.st_size, status.st_mtime

    def _read_state(self) -> _State | None:
        try:
            return msgspec.json.decode((self._folder / "state").read_bytes(), type=_State)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None  # of a damaged one, nobody knows how far it was: it is another stream

    def _write_state(self) -> None:
        replace(self._folder / "state", msgspec.json.encode(self._state))

    def _make_room(self) -> None:
        pods, size, age = self._most
        oldest = self._now() - age
        total = self.size
        dropped = False
        for seq, (length, written) in list(self._there.items()):
            if len(self._there) <= pods and total <= size and written >= oldest:
                break
            total -= length
            self._drop(seq)
            dropped = True
        if dropped:
            with contextlib.suppress(OSError):  # the number of those dropped is for people
                self._write_state()

    def _drop(self, seq: int) -> None:
        self._remove(seq)
        self.lose()

    def _remove(self, seq: int) -> None:
        self._there.pop(seq, None)
        with contextlib.suppress(OSError):
            os.unlink(self._path(seq))  # noqa: PTH108 (thousands, after a long outage)

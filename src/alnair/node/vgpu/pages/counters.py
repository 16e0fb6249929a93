"""The counters of one container: written by its processes, so a stranger's word, read with care.

The file stays open from the moment it is made, so a tenant that renames or replaces it changes
nothing. It is read by `pread`, since a mapping of a file that another may shorten can kill the
reader. Numbers are bounded where they are read; that they are true is another matter, which the
driver's own figures settle (`alnair.sharing.violations`).
"""

import fcntl
import os
import stat
import struct
from pathlib import Path
from typing import Final

import msgspec

from alnair.node.vgpu.pages import abi, left_work

_HEAD: Final = struct.Struct("<QIIQQ")
_U64: Final = struct.Struct("<Q")
_DEVICE_WORDS: Final = abi.SLOT_DEVICE_BYTES // 8
_FIRST_DEVICE: Final = abi.offset(abi.Slot, "device") // 8
_CLASSES: Final = abi.offset(abi.Slot, "classes") // 8
_FIRST_SWAPPED: Final = abi.offset(abi.Slot, "swapped") // 8
_FIRST_LOADED: Final = abi.offset(abi.Slot, "loaded") // 8
_FIRST_ASKED: Final = abi.offset(abi.Slot, "asked") // 8
_FIRST_CALL: Final = abi.offset(abi.Slot, "calls") // 8
#: A slot without its owner.
_ZEROS: Final = bytes(abi.SLOT_BYTES - 8)
_SLOT_WORDS: Final = abi.SLOT_BYTES // 8
_HEAD_WORDS: Final = abi.HEAD_BYTES // 8
#: Reads without news after which a file counts as quiet, and after which as asleep.
_QUIET: Final = 10
_ASLEEP: Final = 100
#: Turns of a round: one that is quiet is read in each second, one that sleeps in the first.
TURNS: Final = 4
_FIRST_BUCKET: Final = abi.offset(abi.Counters, "bucket") + abi.offset(abi.Bucket, "tat_ns")
#: Bytes from the beginning to the end of the buckets.
_BUCKETS: Final = abi.offset(abi.Counters, "padding")
_ANY: Final = (1 << 64) - 1
#: More bytes than any machine has: larger numbers are nonsense and count as this.
MOST: Final = 1 << 50
#: The same by field of `DeviceUse`. Sums of nanoseconds (`charged_ns`, `throttled_ns`) have no
#: bound of their own: 2^50 of them are 13 days, and a training lasts longer. What is believed is
#: how much they grow, and that is bounded where it is added up (`pages.totals`).
_MOST_OF: Final = (MOST, MOST, _ANY, _ANY, MOST, MOST, MOST, MOST)


class DeviceUse(msgspec.Struct, frozen=True):
    """`struct vg_slot_device`: what one process uses of one GPU."""

    held: int = 0
    pending: int = 0
    charged_ns: int = 0
    throttled_ns: int = 0
    launches: int = 0
    refused: int = 0
    waiting: int = 0
    contexts: int = 0


class Slot(msgspec.Struct, frozen=True):
    """One process, as it says; `calls` are (calls, bytes, ns) by class.

    A slot whose owner is 0 is free and counts nothing. `calls` has the classes that its library
    counts, which may be older or newer than we are; those that we do not know are left out.
    """

    index: int
    owner: int
    started: int
    host_bytes: int
    unhooked: int
    devices: tuple[DeviceUse, ...]
    calls: tuple[tuple[int, int, int], ...]
    #: By GPU, bytes in the host's memory beyond its slice; empty where there are none.
    swapped: tuple[int, ...] = ()
    #: By GPU, bytes that its modules are charged with; empty where there are none.
    loaded: tuple[int, ...] = ()
    #: By GPU, bytes that are missing for allocations that wait for a loan; empty where there are
    #: none.
    asked: tuple[int, ...] = ()


class CountersFile:
    """An open counters file.

    Args:
        path: Of the file; made if it is not there.
        rows: GPUs of the container.

    Attributes:
        generation: Of the file; grows when it is made anew.
        repaired: How often a tenant had shortened, lengthened or overwritten it.
        passed: Turns before the last read that this may tell of.
    """

    def __init__(self, path: Path, rows: int) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        self._path = path
        self._fd = os.open(path, flags, 0o600)
        self.rows = rows
        self.generation = 0
        self.repaired = 0
        self.passed = 1
        self._quiet = 0
        self._last = b""
        self._slots: tuple[Slot, ...] = ()
        #: Whether it was valid when it was opened.
        self.was_valid = False
        try:
            self._take_over()
        except BaseException:
            os.close(self._fd)
            raise

    def _take_over(self) -> None:
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            raise OSError(f"{self._path} is not a file: remove it")
        os.fchmod(self._fd, 0o666)
        head = os.pread(self._fd, _HEAD.size, 0)
        self.was_valid = len(head) == _HEAD.size and self._is_valid(head)
        if self.was_valid:
            self.generation = _HEAD.unpack(head)[3]
            os.ftruncate(self._fd, abi.COUNTERS_BYTES)

    @staticmethod
    def _is_valid(head: bytes) -> bool:
        magic, version, slots, generation, _ = _HEAD.unpack(head)
        expected = (abi.COUNTERS_MAGIC, abi.ABI, abi.SLOTS)
        return (magic, version, slots) == expected and 0 < generation < 1 << 63

    def close(self) -> None:
        """Close the file, which stays."""
        os.close(self._fd)

    def rebuild(self, generation: int) -> None:
        """Make all counters anew: zeros, with the magic written last."""
        if os.fstat(self._fd).st_size:
            # Not by truncation: a process that has it mapped would be killed at its next access.
            os.pwrite(self._fd, bytes(abi.COUNTERS_BYTES), 0)
        os.ftruncate(self._fd, abi.COUNTERS_BYTES)
        # All of it now: a tenant that fills the file system must not leave the processes of its
        # neighbours without a page to claim a slot in, which would kill them.
        os.posix_fallocate(self._fd, 0, abi.COUNTERS_BYTES)
        self.generation = generation
        self._write_head(0)
        self._last = b""

    def _write_head(self, used: int) -> None:
        os.pwrite(self._fd, _HEAD.pack(0, abi.ABI, abi.SLOTS, self.generation, used), 0)
        os.pwrite(self._fd, _U64.pack(abi.COUNTERS_MAGIC), 0)

    def repair(self) -> bool:
        """Set size and head right if a tenant changed them; tell whether that was so.

        What its slots hold is left as it is: of processes that live it may be true, and a slot that
        names another is freed for it.
        """
        size = os.fstat(self._fd).st_size
        if size == abi.COUNTERS_BYTES and self._is_whole(os.pread(self._fd, _HEAD.size, 0)):
            return False
        # At once: a file that a tenant lengthens takes the memory of all.
        os.ftruncate(self._fd, abi.COUNTERS_BYTES)
        self._write_head(abi.SLOTS)
        self.repaired += 1
        return True

    def _is_whole(self, data: bytes) -> bool:
        """Tell whether a file that begins so has the head that we wrote."""
        if len(data) < _HEAD.size:
            return False
        head = data[: _HEAD.size]
        return self._is_valid(head) and _HEAD.unpack(head)[3] == self.generation

    @property
    def step(self) -> int:
        """How many turns pass between two reads now."""
        if self._quiet < _QUIET:
            return 1
        return 2 if self._quiet < _ASLEEP else TURNS

    def earned_ns(self, row: int) -> int:
        """Return when it will have earned all it was charged on a GPU, by its own word.

        CLOCK_MONOTONIC; 0 where it was charged nothing yet.
        """
        at = _FIRST_BUCKET + row * abi.BUCKET_BYTES
        return _U64.unpack_from(self._last, at)[0] if len(self._last) >= at + _U64.size else 0

    def is_due(self, turn: int) -> bool:
        """Whether it is to be read in a turn."""
        return turn % self.step == 0

    def read(self, turn: int = 0) -> tuple[Slot, ...]:
        """Return the slots that were ever claimed, those that are free now included.

        The same object as before if nothing was written since. Of a file that was quiet for long
        all is looked at in turn 0 only: else the buckets do, as no GPU time passes without them.

        Args:
            turn: Of `TURNS`.
        """
        self.passed = self.step
        self._quiet += 1
        is_quiet = turn != 0 and self._quiet > _QUIET
        if is_quiet and os.pread(self._fd, _BUCKETS, 0) == self._last[:_BUCKETS]:
            return self._slots
        if os.fstat(self._fd).st_size != abi.COUNTERS_BYTES:
            self.repair()
        data = os.pread(self._fd, max(len(self._last), abi.HEAD_BYTES), 0)
        if data == self._last:
            return self._slots
        if not self._is_whole(data):
            self.repair()
            data = os.pread(self._fd, len(data), 0)
        self._quiet = 0
        used = 0
        if len(data) >= _HEAD.size:
            used = min(_HEAD.unpack_from(data)[4], abi.SLOTS)
        length = abi.HEAD_BYTES + used * abi.SLOT_BYTES
        if len(data) != length:
            data = os.pread(self._fd, length, 0)
        self._last = data
        # What a shorter file lacks counts as zero.
        words = memoryview(data.ljust(length, b"\0")).cast("Q")
        first = _HEAD_WORDS
        slots = []
        for index in range(used):
            slots.append(self._slot(index, words[first : first + _SLOT_WORDS]))
            first += _SLOT_WORDS
        self._slots = tuple(slots)
        return self._slots

    def _slot(self, index: int, words: "memoryview[int]") -> Slot:
        devices = []
        for row in range(self.rows):
            first = _FIRST_DEVICE + row * _DEVICE_WORDS
            devices.append(DeviceUse(*map(min, words[first : first + _DEVICE_WORDS], _MOST_OF)))
        calls = []
        for call in range(min(words[_CLASSES] or abi.COUNTED_BEFORE, len(abi.Call))):
            first = _FIRST_CALL + 3 * call
            calls.append((words[first], words[first + 1], words[first + 2]))
        swapped = words[_FIRST_SWAPPED : _FIRST_SWAPPED + self.rows]
        loaded = words[_FIRST_LOADED : _FIRST_LOADED + self.rows]
        asked = words[_FIRST_ASKED : _FIRST_ASKED + self.rows]
        return Slot(
            index,
            words[0],
            words[1],
            min(words[2], MOST),
            min(words[3], MOST),
            tuple(devices),
            tuple(calls),
            tuple(min(one, MOST) for one in swapped) if any(swapped) else (),
            tuple(min(one, MOST) for one in loaded) if any(loaded) else (),
            tuple(min(one, MOST) for one in asked) if any(asked) else (),
        )

    def free(self, dead: list[tuple[int, int, int]]) -> int:
        """Free slots of processes that are gone; return how many were freed.

        Under the lock that abi.h describes, each is looked at again first: a slot that has another
        owner by now is left alone, and so are all while a process of the container frees slots.

        Args:
            dead: (index, owner, started) of each.
        """
        try:
            # A descriptor of its own: a lock belongs to the open file, and this one is for reading.
            fd = os.open(f"/proc/self/fd/{self._fd}", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return 0
        freed = 0
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for index, owner, started in dead:
                first = abi.HEAD_BYTES + index * abi.SLOT_BYTES
                now = os.pread(fd, 16, first)
                if now != owner.to_bytes(8, "little") + started.to_bytes(8, "little"):
                    continue
                left_work.take_over(fd, first, self.rows)
                # All but the owner first. Who claims it next counts from zero, and says a bit later
                # when it started: with another's start, its siblings would take it for dead.
                os.pwrite(fd, _ZEROS, first + 8)
                os.pwrite(fd, bytes(8), first)
                freed += 1
        except OSError:
            return freed  # locked by who frees now, or no memory left on the file system
        finally:
            os.close(fd)
        return freed

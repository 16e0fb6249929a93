"""The limits page of one container: written by this server only, read by the tenant at any moment.

Written by `pwrite`, never through a mapping. What belongs together is written between an odd and an
even `sequence`, and a reader that saw an odd one, or two different ones, reads again. Data written
before a system call is seen before data written after it, which is what makes that an order.
"""

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

from alnair.node.vgpu.containers.container_slices import ContainerSlices, row
from alnair.node.vgpu.pages import abi

_DEVICES: Final = abi.offset(abi.Limits, "device")
_LOANS: Final = abi.offset(abi.Limits, "loan")
_LOAN_BYTES: Final = ctypes.sizeof(abi.Loan)
_SEQUENCE: Final = abi.offset(abi.Limits, "sequence")
_HEARTBEAT: Final = abi.offset(abi.Limits, "heartbeat_ns")
_U64: Final = struct.Struct("<Q")
_MIB: Final = 1 << 20
#: What the server found out about a container on a GPU, which another assignment does not change.
_LEARNED: Final = (
    "memory_overhead",
    "memory_credit",
    "cost_scale_ppm",
    "neighbours",
    "not_before_ns",
)

#: Bytes of a context by a GPU's UUID, 0 if it has no figure; None: not asked yet, as it was.
Contexts = Callable[[str], int | None]


class LimitsPage:
    """An open limits page.

    Args:
        path: Of the file; made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._fd, found = _open(path)
        self.page = abi.Limits()
        if len(found) == abi.LIMITS_BYTES:
            self.page = abi.Limits.from_buffer_copy(found)
        if (self.page.magic, self.page.abi) != (abi.LIMITS_MAGIC, abi.ABI):
            self.page = abi.Limits()

    def close(self) -> None:
        """Close the file; the page stays as it is."""
        os.close(self._fd)

    def assign(
        self,
        assignment: ContainerSlices,
        state: abi.State,
        generation: int,
        contexts: Contexts = lambda _: None,
    ) -> None:
        """Write all that an assignment says; what the server itself decides per GPU is kept.

        Args:
            assignment: Of the container.
            state: Of the container.
            generation: Of the counters.
            contexts: Tells what a context costs where the assignment does not.
        """
        page = self.page
        before = {bytes(old.uuid): old for old in page.device[: page.n_devices]}
        rows = [row(share) for share in assignment.shares]
        for share, new in zip(assignment.shares, rows, strict=True):
            learned = contexts(share.uuid)
            if not share.context_mib and learned is not None:
                new.context_bytes = learned
            if (old := before.get(bytes(new.uuid))) is not None:
                for field in _LEARNED:
                    setattr(new, field, getattr(old, field))
                if not share.context_mib and learned is None:
                    new.context_bytes = old.context_bytes
        with _Writing(self):
            page.abi = abi.ABI
            page.n_devices = len(rows)
            page.state = state
            page.deadline_ms = assignment.deadline_ms
            page.host_limit = assignment.host_memory_mib * _MIB
            name = assignment.name.encode()[: len(page.container) - 1]
            ctypes.memset(page.container, 0, len(page.container))
            ctypes.memmove(page.container, name, len(name))
            page.generation = generation
            if state is not abi.State.REFUSED:
                page.message = b""
            for index in range(abi.DEVICES):
                page.device[index] = rows[index] if index < len(rows) else abi.DeviceLimit()
                if not page.device[index].flags & abi.Flag.BORROWS:
                    page.loan[index] = abi.Loan()
            # All but the magic, which a page that was never complete gets last.
            self._write(8, abi.LIMITS_BYTES)
        page.magic = abi.LIMITS_MAGIC
        self._write(0, 8)

    def say(self, state: abi.State, message: str = "") -> None:
        """Set the state, and the sentence that a refused container prints."""
        with _Writing(self):
            self.page.message = message.encode("ascii", "replace")[:159]
            self.page.state = state
            first = abi.offset(abi.Limits, "message")
            self._write(first, first + 160)
            first = abi.offset(abi.Limits, "state")
            self._write(first, first + 4)

    def update(self, index: int, **fields: int) -> None:
        """Write fields of one GPU's row, if they changed."""
        device = self.page.device[index]
        if all(getattr(device, name) == value for name, value in fields.items()):
            return
        with _Writing(self):
            for name, value in fields.items():
                setattr(device, name, value)
            first = _DEVICES + index * abi.DEVICE_BYTES
            self._write(first, first + abi.DEVICE_BYTES)

    def lend(self, index: int, loan: int, until_ns: int, answered_ns: int) -> None:
        """Write the loan of one GPU's row, if it changed; the answer last."""
        old = self.page.loan[index]
        if (old.bytes, old.until_ns, old.answered_ns) == (loan, until_ns, answered_ns):
            return
        first = _LOANS + index * _LOAN_BYTES
        answer = first + abi.offset(abi.Loan, "answered_ns")
        self.page.loan[index] = abi.Loan(loan, until_ns, answered_ns)
        with _Writing(self):
            self._write(first, answer)
            self._write(answer, first + _LOAN_BYTES)

    def beat(self, now_ns: int) -> None:
        """Tell that the server lives."""
        self.page.heartbeat_ns = now_ns
        os.pwrite(self._fd, _U64.pack(now_ns), _HEARTBEAT)

    def _write(self, first: int, end: int) -> None:
        os.pwrite(self._fd, memoryview(self.page).cast("B")[first:end], first)

    def sequence(self, value: int) -> None:
        """Write the sequence number."""
        self.page.sequence = value
        os.pwrite(self._fd, _U64.pack(value), _SEQUENCE)


class _Writing:
    """The time between an odd and an even sequence."""

    def __init__(self, page: LimitsPage) -> None:
        self._page = page

    def __enter__(self) -> None:
        # Odd also where a server died in between: its half is written over now.
        self._page.sequence(self._page.page.sequence | 1)

    def __exit__(self, *_: object) -> None:
        self._page.sequence(self._page.page.sequence + 1)


def refuse(folder: Path, message: str) -> None:
    """Let no process of a container that cannot be served use CUDA, as far as its page allows."""
    with contextlib.suppress(Exception):
        page = LimitsPage(folder / "limits")
        try:
            page.say(abi.State.REFUSED, message)
        finally:
            page.close()


def _open(path: Path) -> tuple[int, bytes]:
    """Open the file for writing, of the right size and mode; return it with what it holds."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except PermissionError:
        # Not root, and the file is read-only to its owner too.
        path.chmod(0o600)
        fd = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(f"{path} is not a file: remove it")
        os.ftruncate(fd, abi.LIMITS_BYTES)
        os.fchmod(fd, 0o444)
        return fd, os.pread(fd, abi.LIMITS_BYTES, 0)
    except BaseException:
        os.close(fd)
        raise

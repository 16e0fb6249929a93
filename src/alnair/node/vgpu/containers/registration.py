"""The socket of one container: fixed frames in, fixed frames out, and nobody waits for anybody.

Each container has a listening socket of its own, so what one tenant does to it, another does not
feel: its backlog is its own, and a tenant that knocks too often is not listened to for a while,
which costs this process nothing. A peer has a second to send its frame, and gets one answer.
"""

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

from alnair.node.vgpu.pages import abi

#: Knocks that are answered a second, and at once: 64 processes that start together, four times.
RATE: Final = 200.0
BURST: Final = 256.0
#: Peers that have connected and said nothing yet; more wait in the kernel.
MOST_OPEN: Final = 64
#: Seconds for a peer's frame; the library sends it at once.
PATIENCE: Final = 1.0
#: Accepted in one turn of the event loop: the other containers have theirs in between.
_BATCH: Final = 16
#: Seconds in which a container that knocks too often is not listened to.
_PAUSE: Final = 0.05

_HEAD: Final = struct.Struct("<QIIQII")
_TEXT: Final = abi.offset(abi.Frame, "text")
_TEXT_BYTES: Final = abi.FRAME_BYTES - _TEXT

#: Says whether the process at the other end belongs to the container: the reply, and a sentence.
Answer = Callable[[socket.socket], tuple[abi.Reply, str]]


def reply(kind: abi.Reply, text: str = "") -> bytes:
    """Return a reply's frame; the text is cut to what fits."""
    said = text.encode("ascii", "replace")[: _TEXT_BYTES - 1]
    head = _HEAD.pack(abi.FRAME_MAGIC, abi.ABI, kind, 0, 0, 0)
    return head.ljust(_TEXT, b"\0") + said.ljust(_TEXT_BYTES, b"\0")


def operation(frame: bytes) -> abi.Operation | str:
    """Return what a frame asks, or what is wrong with it."""
    if len(frame) != abi.FRAME_BYTES:
        return f"a frame has {abi.FRAME_BYTES} bytes"
    magic, version, asked, *_ = _HEAD.unpack_from(frame)
    if magic != abi.FRAME_MAGIC:
        return "this is not a frame of libalnair_vgpu.so"
    if version != abi.ABI:
        return (
            f"the library speaks version {version}, the server {abi.ABI}: "
            "restart the container, so that it gets the library of this node"
        )
    try:
        return abi.Operation(asked)
    except ValueError:
        return f"there is no operation {asked}"


class RegistrationSocket:
    """A container's listening socket, in the running event loop.

    Args:
        folder: Where its file `socket` is made.
        answer: Judges who knocks to register.

    Attributes:
        answered: Replies by kind.
        late: Peers that said nothing in time.
    """

    def __init__(self, folder: Path, answer: Answer) -> None:
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._open: dict[socket.socket, asyncio.TimerHandle] = {}
        self._credit = BURST
        self._counted = self._loop.time()
        self._pause: asyncio.TimerHandle | None = None
        self.answered = dict.fromkeys(abi.Reply, 0)
        self.late = 0
        self._listener = _listen(folder)
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Stop listening; the file stays, and refuses."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for connection in tuple(self._open):
            self._close(connection)

    def _accept(self) -> None:
        now = self._loop.time()
        self._credit = min(BURST, self._credit + (now - self._counted) * RATE)
        self._counted = now
        for _ in range(_BATCH):
            if self._credit < 1 or len(self._open) >= MOST_OPEN:
                self._loop.remove_reader(self._listener)
                self._pause = self._loop.call_later(_PAUSE, self._resume)
                return
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                # No descriptors left, or the peer left: later.
                self._loop.remove_reader(self._listener)
                self._pause = self._loop.call_later(_PAUSE, self._resume)
                return
            self._credit -= 1
            connection.setblocking(False)
            late = self._loop.call_later(PATIENCE, self._expire, connection)
            self._open[connection] = late
            self._loop.add_reader(connection, self._read, connection)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener, self._accept)

    def _read(self, connection: socket.socket) -> None:
        try:
            # Without room for ancillary data, the kernel drops descriptors that a peer sends along.
            frame = connection.recv(abi.FRAME_BYTES + 1)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._close(connection)
            return
        if frame:
            with contextlib.suppress(OSError):
                # A peer that reads nothing gets nothing: this never waits.
                connection.send(self._reply(connection, frame))
        self._close(connection)

    def _reply(self, connection: socket.socket, frame: bytes) -> bytes:
        asked = operation(frame)
        if isinstance(asked, str):
            kind, text = abi.Reply.BAD, asked
        elif asked is abi.Operation.PING:
            kind, text = abi.Reply.OK, ""
        else:
            kind, text = self._answer(connection)
        self.answered[kind] += 1
        return reply(kind, text)

    def _expire(self, connection: socket.socket) -> None:
        self.late += 1
        self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        late = self._open.pop(connection, None)
        if late is not None:
            late.cancel()
            self._loop.remove_reader(connection)
            connection.close()


def _listen(folder: Path) -> socket.socket:
    """Listen at `folder`/socket, whose place an old socket may hold until this moment."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.setblocking(False)
        # An address has 107 characters at most, a path may have more.
        inside = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            new = folder / "socket.new"
            new.unlink(missing_ok=True)
            listener.bind(f"/proc/self/fd/{inside}/socket.new")
            new.chmod(0o666)
            listener.listen(128)
            new.rename(folder / "socket")
        finally:
            os.close(inside)
    except OSError:
        listener.close()
        raise
    return listener

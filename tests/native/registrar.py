"""A vGPU server that does as a test says: one answer for each connection, in order."""

import contextlib
import socket
import struct
import threading
from typing import NamedTuple, Self

from native.container import ABI, REGISTERED, Container

FRAME = struct.Struct("<QIIQII32x192s")
MAGIC = 0x31464756414E4C41

OK, REFUSED, BAD, BUSY = range(4)


class Request(NamedTuple):
    """`struct vg_frame`, as a process sent it."""

    magic: int
    abi: int
    operation: int
    pid: int
    driver_version: int
    library_version: int
    text: bytes


class Registrar:
    """Listens in the container's folder.

    Args:
        container: its page becomes REGISTERED when OK is answered.
        answers: for each connection a reply code, bytes to send as they are, or None: say nothing
            and close. After the last one nobody answers.
        text: of the replies.
    """

    def __init__(self, container: Container, *answers: int | bytes | None, text: str = "") -> None:
        self.requests: list[Request] = []
        self._container, self._answers, self._text = container, answers, text
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(str(container.folder / "socket"))
        self._socket.listen(64)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        waiting = list(self._answers)
        kept = []
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                break
            if not waiting:
                kept.append(peer)  # it waits in vain
                continue
            with peer, contextlib.suppress(OSError):  # it was killed in between
                self._answer(peer, waiting.pop(0))
        for peer in kept:
            peer.close()

    def _answer(self, peer: socket.socket, answer: int | bytes | None) -> None:
        data = peer.recv(4096)
        if len(data) == FRAME.size:
            self.requests.append(Request(*FRAME.unpack(data)))
        if answer == OK:
            self._container.limits.state = REGISTERED
        if isinstance(answer, bytes):
            peer.send(answer)
        elif answer is not None:
            peer.send(frame(answer, self._text))


def frame(operation: int, text: str = "", *, magic: int = MAGIC, abi: int = ABI) -> bytes:
    """A reply."""
    return FRAME.pack(magic, abi, operation, 0, 0, 0, text.encode())

"""Answers of HTTP/1.1 on one connection: what RFC 9112 says of their framing, and no more.

Requests go out one at a time; each gets one answer, with a length, in chunks, or up to the end of
the connection. What does not come as it should ends the connection.
"""

import asyncio
import re
from typing import Final

import msgspec

#: Fields of an answer's head that say how its body ends, and whether the connection goes on.
_FRAMING: Final = re.compile(
    rb"\r\n(content-length|transfer-encoding|connection)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE
)
_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\r\n]*)?(?=\r\n|$)")
_SIZE: Final = re.compile(rb"[0-9a-fA-F]{1,12}(?=[ \t]*(;|$))")
_END_OF_HEAD: Final = b"\r\n\r\n"
#: Bytes of a head, or of a line before a chunk, at most.
_LONGEST_HEAD: Final = 1 << 16
#: How the body ends when it is neither a length nor already read.
_CHUNKS, _UNTIL_CLOSED = -1, -2


class Answer(msgspec.Struct, frozen=True, gc=False):
    """An answer.

    Attributes:
        status: HTTP status code.
        head: The head as it came, without the empty line.
        body: The whole body.
    """

    status: int
    head: bytes
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the value of the first header of this name, None if there is none."""
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == name.lower().encode():
                return value.strip().decode("latin-1")
        return None


class AnswerStream(asyncio.Protocol):
    """One connection: a request at a time is sent, and its answer awaited.

    Attributes:
        kept: Whether another request may follow.
        heard: Whether anything of an answer to the last request came.
        idle_since: Loop time of the last answer's end.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self.closed: asyncio.Future[None] = loop.create_future()
        self.kept = True
        self.heard = False
        self.idle_since = 0.0
        self._begin()

    def _begin(self) -> None:
        self._pending = b""
        self._head = b""
        self._status = 0
        self._left = 0
        self._in_chunk = 0
        self._parts: list[bytes] = []

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        """Send a request; the future becomes its answer, or a ConnectionError."""
        assert self._transport is not None
        assert self._waiter is None
        self.heard = False
        self._waiter = waiter = self._loop.create_future()
        self._transport.write(request)
        return waiter

    def abort(self) -> None:
        """End the connection at once."""
        self.kept = False
        if self._transport is not None:
            self._transport.abort()

    # --- what the loop calls ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take bytes of an answer."""
        self.heard = True
        if self._waiter is None:
            self.abort()  # nothing was asked
            return
        try:
            self._read(data)
        except ValueError as error:
            self._fail(ConnectionError(f"the answer is no HTTP/1.1: {error}"))
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """End what is under way."""
        self.kept = False
        if self._waiter is not None:
            if self._head and self._left == _UNTIL_CLOSED and error is None:
                self._finish()
            else:
                why = str(error) if error else "the server closed the connection"
                self._fail(ConnectionResetError(why or type(error).__name__))
        if not self.closed.done():
            self.closed.set_result(None)

    # --- reading ----------------------------------------------------------------------------------

    def _read(self, data: bytes) -> None:
        if not self._head:
            data = self._pending + data if self._pending else data
            self._pending = b""
            while not self._head:
                end = data.find(_END_OF_HEAD)
                if end < 0:
                    if len(data) > _LONGEST_HEAD:
                        raise ValueError("its head has no end")
                    self._pending = data
                    return
                self._take_head(data[:end])
                data = data[end + len(_END_OF_HEAD) :]
        if self._left == _CHUNKS:
            self._take_chunks(data)
        elif self._left == _UNTIL_CLOSED:
            self._parts.append(data)
        elif len(data) > self._left:
            raise ValueError("more came than was announced")
        else:
            self._left -= len(data)
            self._parts.append(data)
            if not self._left:
                self._finish()

    def _take_head(self, head: bytes) -> None:
        """Take a head; one of an interim answer (1xx) is dropped."""
        first = _STATUS.match(head)
        if first is None:
            raise ValueError(f"{head[:40]!r}")
        status = int(first[2])
        if 100 <= status < 200:
            if status == 101:
                raise ValueError("it switches to another protocol")
            return
        self._head, self._status = head, status
        fields = {name.lower(): value.strip() for name, value in _FRAMING.findall(head)}
        options = fields.get(b"connection", b"").lower()
        self.kept = b"close" not in options and (first[1] == b"1" or b"keep-alive" in options)
        if status in (204, 304):
            self._left = 0
        elif coding := fields.get(b"transfer-encoding"):
            if coding.lower() != b"chunked":
                raise ValueError(f"its coding is {coding[:40]!r}")
            self._left = _CHUNKS
        elif length := fields.get(b"content-length"):
            self._left = int(length)
            if self._left < 0:
                raise ValueError("its length is below 0")
        else:
            self._left = _UNTIL_CLOSED

    def _take_chunks(self, data: bytes) -> None:
        """Take chunks: `_in_chunk` bytes are left of one and of the line end after it."""
        data = self._pending + data if self._pending else data
        self._pending = b""
        at, size = 0, len(data)
        while at < size:
            if self._in_chunk > 2:
                part = data[at : at + self._in_chunk - 2]
                self._parts.append(part)
                at += len(part)
                self._in_chunk -= len(part)
            elif self._in_chunk:
                if size - at < 2:
                    break
                if data[at : at + 2] != b"\r\n":
                    raise ValueError("a chunk is longer than it says")
                at += 2
                self._in_chunk = 0
            else:
                end = data.find(b"\r\n", at)
                if end < 0:
                    if size - at > _LONGEST_HEAD:
                        raise ValueError("a chunk does not begin")
                    break
                line = data[at:end]
                length = _SIZE.match(line)
                if length is None:
                    raise ValueError(f"a chunk begins with {line[:40]!r}")
                if not int(length[0], 16):
                    self._take_trailer(data[at:], end - at)
                    return
                at = end + 2
                self._in_chunk = int(length[0], 16) + 2
        self._pending = data[at:]

    def _take_trailer(self, data: bytes, line: int) -> None:
        """Take the last chunk, whose first line is so long, and the fields after it."""
        if data[line : line + 4] == _END_OF_HEAD:
            rest = data[line + 4 :]
        else:
            end = data.find(_END_OF_HEAD, line)
            if end < 0:
                if len(data) > _LONGEST_HEAD:
                    raise ValueError("its trailer has no end")
                self._pending = data
                return
            rest = data[end + 4 :]
        if rest:
            raise ValueError("more came than was announced")
        self._finish()

    def _finish(self) -> None:
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        answer = Answer(self._status, self._head, body)
        self._begin()
        self.idle_since = self._loop.time()
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)

    def _fail(self, error: Exception) -> None:
        self.kept = False
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

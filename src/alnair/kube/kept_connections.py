"""Requests over connections that are kept: one pool to one server.

aiohttp spends about 80 µs more on a request than this; see docs/decisions/0046.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import aiohappyeyeballs

from alnair.kube.http_answers import Answer, AnswerStream

#: Seconds until a connection must stand.
CONNECT_TIMEOUT: Final = 10.0
#: Seconds without a request after which a connection is ended.
_IDLE_SECONDS: Final = 60.0
#: Seconds between tries of the addresses that a name has (RFC 8305).
_NEXT_ADDRESS: Final = 0.25
#: Seconds for the last connections to end when the pool is closed.
_LAST_CONNECTIONS: Final = 1.0
#: Methods that may be sent again if the server closed a kept connection instead of answering: it
#: may have read the request (RFC 9110, 9.2.2).
_IDEMPOTENT: Final = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "DELETE"))
_PORTS: Final = {"http": 80, "https": 443}
#: What `getaddrinfo` returns: family, kind, protocol, canonical name, and where to connect to.
_Address = tuple[int, int, int, str, tuple[Any, ...]]


def notice_dead_peers(sock: socket.socket) -> None:
    """Let a socket notice within 30 s that its peer is gone (client-go: HTTP/2 pings)."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        # The names differ by system; without them the system's own (slow) keep-alive stays.
        number = getattr(socket, option, None)
        if number is not None:
            sock.setsockopt(socket.IPPROTO_TCP, number, value)


class KeptConnections:
    """A pool of connections to one server.

    Args:
        server: Root address, without a slash at the end.
        tls: None for plain http.
        server_name: Verify the certificate against it; None for the host of `server`.
        limit: Requests in flight; more wait.
        headers: Sent with each request that has none of the same name.
    """

    def __init__(
        self,
        server: str,
        tls: ssl.SSLContext | None,
        server_name: str | None,
        limit: int,
        headers: Sequence[tuple[str, str]],
    ) -> None:
        address = urlsplit(server)
        self._host = address.hostname or ""
        self._port = address.port or _PORTS[address.scheme]
        self._root = address.path
        self._tls = tls
        self._server_name = server_name or self._host
        self._free = asyncio.Semaphore(limit)
        # Of a header that could end a line, nothing is sent.
        lines = [("Host", address.netloc.rpartition("@")[2]), *headers]
        self._lines: dict[str, str] = {}
        for name, value in lines:
            before = self._lines.get(name.lower(), "")
            self._lines[name.lower()] = f"{before}{name}: {_line(value)}\r\n"
        self._head = "".join(self._lines.values())
        self._idle: deque[AnswerStream] = deque()
        self._open: set[AnswerStream] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def ask(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Answer:
        """Send one request and return its answer.

        Args:
            method: HTTP method.
            target: Path under the server's root with its query, escaped.
            headers: Further ones; they go before the pool's.
            body: The body to send.

        Raises:
            OSError: No complete answer came; the request may have acted.
        """
        head = f"{method} {self._root}{_line(target)} HTTP/1.1\r\n{self._head_beside(headers)}"
        for name, value in headers.items():
            head += f"{name}: {_line(value)}\r\n"
        if body is not None:
            request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body
        else:
            request = f"{head}\r\n".encode("latin-1")
        async with self._free:
            while True:
                stream = self._kept()
                is_new = stream is None
                if stream is None:
                    stream = await self._connect()
                try:
                    answer = await stream.ask(request)
                except ConnectionError:
                    if is_new or stream.heard or method not in _IDEMPOTENT:
                        raise
                    continue  # the server had closed it when the request came
                except BaseException:
                    stream.abort()
                    raise
                if stream.kept:
                    self._keep(stream)
                else:
                    stream.abort()
                return answer

    def _head_beside(self, headers: Mapping[str, str]) -> str:
        """Return the lines that are sent with each request, but those that it has itself."""
        own = {name.lower() for name in headers}
        if own.isdisjoint(self._lines):
            return self._head
        return "".join(line for name, line in self._lines.items() if name not in own)

    async def close(self) -> None:
        """End all connections; requests in flight fail."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._idle.clear()
        ending = [stream.closed for stream in self._open]
        for stream in list(self._open):
            stream.abort()
        if ending:
            await asyncio.wait(ending, timeout=_LAST_CONNECTIONS)

    def _kept(self) -> AnswerStream | None:
        """Take the kept connection that was used last."""
        while self._idle:
            stream = self._idle.pop()
            if stream.kept:
                return stream
        return None

    def _keep(self, stream: AnswerStream) -> None:
        self._idle.append(stream)
        if self._sweep is None:
            loop = asyncio.get_running_loop()
            self._sweep = loop.call_later(_IDLE_SECONDS, self._end_idle)

    def _end_idle(self) -> None:
        """End the connections that nobody has used for long."""
        self._sweep = None
        loop = asyncio.get_running_loop()
        while self._idle:
            oldest = self._idle[0]
            left = oldest.idle_since + _IDLE_SECONDS - loop.time()
            if oldest.kept and left > 0:
                self._sweep = loop.call_later(left, self._end_idle)
                return
            self._idle.popleft().abort()

    async def _connect(self) -> AnswerStream:
        self._refuse_if_closed()
        loop = asyncio.get_running_loop()
        stream = AnswerStream(loop)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                # asyncio's own race of addresses leaves the socket of a cancelled call open.
                sock = await aiohappyeyeballs.start_connection(
                    await self._addresses(),
                    happy_eyeballs_delay=_NEXT_ADDRESS,
                    interleave=1,
                )
                transport, _ = await loop.create_connection(
                    lambda: stream,
                    sock=sock,
                    ssl=self._tls,
                    server_hostname=self._server_name if self._tls is not None else None,
                )
        except TimeoutError as error:
            text = f"no connection to {self._host}:{self._port} in {CONNECT_TIMEOUT:g} s"
            raise ConnectionError(text) from error
        try:
            self._refuse_if_closed()  # it may be by now
        except ConnectionError:
            stream.abort()
            raise
        self._open.add(stream)
        stream.closed.add_done_callback(lambda _: self._open.discard(stream))
        with suppress(OSError):  # it may be closed by now
            notice_dead_peers(transport.get_extra_info("socket"))
        return stream

    async def _addresses(self) -> Sequence[_Address]:
        try:  # of a number nobody need be asked
            return socket.getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except socket.gaierror:
            loop = asyncio.get_running_loop()
            return await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ConnectionError("the client is closed")


def _line(text: str) -> str:
    """Return a text that is sent in one line.

    Raises:
        ValueError: It has line ends.
    """
    if "\r" in text or "\n" in text:
        raise ValueError(f"a line end in what is sent as a header: {text[:40]!r}")
    return text

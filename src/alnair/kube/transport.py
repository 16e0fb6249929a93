"""HTTP to one API server: the only module that imports aiohttp.

Knows connections, credentials, retries and status codes; knows nothing of kinds. JSON is asked for
uncompressed (`identity`): on the networks inside a cluster the CPU of gzip costs more than the
bytes. Requests go over connections of our own, which cost less (`kept_connections`); aiohttp reads
streams, and goes through proxies.
"""

import asyncio
import datetime as dt
import random
import socket
import time
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from alnair.kube.access.connection import Connection
from alnair.kube.access.credentials import Certificate
from alnair.kube.errors import (
    ApiError,
    ConnectionFailed,
    ProtocolError,
    ServerTimeout,
    Unauthorized,
    WatchTimeout,
    from_answer,
)
from alnair.kube.http_answers import Answer
from alnair.kube.kept_connections import CONNECT_TIMEOUT, KeptConnections, notice_dead_peers

USER_AGENT = "alnair"
JSON = "application/json"
#: Repeats of one call after refusals with Retry-After, as many as client-go makes.
REPEATS = 10
#: Bytes that a watch may buffer before the socket is paused. Bigger reads mean fewer wake-ups in a
#: burst.
WATCH_BUFFER = 1 << 20
#: Seconds for the last connections to end when the pool is closed.
_LAST_CONNECTIONS = 1.0
#: Seconds after which a person who waits for an answer is told.
OVERDUE = 5.0
#: One request: `Transport.request` bounds the whole, so only connecting has a bound of its own.
_ONE = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT)


def _keepalive(address: Any) -> socket.socket:
    family, kind, proto, _, _ = address
    sock = socket.socket(family, kind, proto)
    notice_dead_peers(sock)
    return sock


class Transport:
    """A pool of connections with credentials.

    Args:
        connection: Where and as whom.
        max_connections: Requests in flight, and streams beside them; more wait for a free
            connection.
        user_agent: The header of that name.
        timeout: Seconds for one call with its repeats.
        jitter: Numbers in [0, 1) that spread repeats, so that refused clients do not return
            together.
        overdue: Called once per request whose answer is not there after `OVERDUE` seconds, with
            the request in words; for who looks at a terminal.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        max_connections: int,
        user_agent: str,
        timeout: float,
        jitter: Callable[[], float] = random.random,
        overdue: Callable[[str], None] | None = None,
    ) -> None:
        self._connection = connection
        self._max_connections = max_connections
        self._user_agent = user_agent
        self._timeout = timeout
        self._jitter = jitter
        self._overdue = overdue
        self._tls = connection.tls()
        self._presented: Certificate | None = None
        self._session: aiohttp.ClientSession | None = None
        self._kept: KeptConnections | None = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def open(self) -> None:
        """Make the pool; connections are made when they are needed."""
        headers: list[tuple[str, str]] = [
            ("User-Agent", self._user_agent),
            ("Accept", JSON),
            ("Accept-Encoding", "identity"),
        ]
        for name, value in self._connection.headers.items():
            values = [value] if isinstance(value, str) else value
            headers.extend((name, one) for one in values)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._max_connections,
                ssl=self._tls if self._tls is not None else True,
                socket_factory=self._socket,
                keepalive_timeout=60.0,
            ),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_ONE,
            auto_decompress=False,
            skip_auto_headers=("Content-Type",),
        )
        if self._connection.proxy is None:
            self._kept = KeptConnections(
                self._connection.server,
                self._tls,
                self._connection.tls_server_name,
                self._max_connections,
                headers,
            )

    async def close(self) -> None:
        """Close all connections; requests in flight fail."""
        if self._kept is not None:
            await self._kept.close()
            self._kept = None
        if self._session is not None:
            await self._session.close()
            self._session = None
            await self._end_connections()

    def _socket(self, address: Any) -> socket.socket:
        made = _keepalive(address)
        self._sockets.add(made)
        return made

    async def _end_connections(self) -> None:
        """End connections whose TLS goodbye the server has not answered.

        The session forgets a connection that is left in the middle of an answer, such as a watch,
        and asyncio then waits up to 30 s for the server.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_CONNECTIONS):
                while left := [one for one in self._sockets if one.fileno() >= 0]:
                    for one in left:
                        with suppress(OSError):
                            one.shutdown(socket.SHUT_RDWR)
                    await asyncio.sleep(0.001)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        repeat: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send one request and return the body of the answer.

        Args:
            method: HTTP method.
            path: Absolute path under the server's root.
            query: Query parameters, not yet escaped.
            body: The body to send.
            content_type: Its type.
            repeat: Wait and send again when the server refuses with Retry-After.
            headers: Further ones.

        Raises:
            ApiError: The server refuses.
            ConnectionFailed: No complete answer came in time; the request may have acted.
        """
        if self._overdue is None:
            return await self._request(method, path, query, body, content_type, repeat, headers)
        what = f"{method} {self._connection.server}{path}"
        late = asyncio.get_running_loop().call_later(OVERDUE, self._overdue, what)
        try:
            return await self._request(method, path, query, body, content_type, repeat, headers)
        finally:
            late.cancel()

    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        repeat: bool,
        headers: Mapping[str, str] | None,
    ) -> bytes:
        deadline = time.monotonic() + self._timeout
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    return await self._once(method, path, query, body, content_type, headers)
            except (aiohttp.ClientError, OSError) as error:
                why = str(error) or f"no answer in {self._timeout:g} s"
                raise self._failed(method, path, why) from error
            except ApiError as error:
                attempt += 1
                wait = error.retry_after
                acted = isinstance(error, ServerTimeout) or not error.is_transient
                if not repeat or acted or wait is None or attempt > REPEATS:
                    raise
                # Never before the stated time; up to half as much later.
                wait = max(wait, 0.1) * (1 + 0.5 * self._jitter())
                if time.monotonic() + wait >= deadline:
                    raise
            await asyncio.sleep(wait)

    async def date(self) -> dt.datetime:
        """Ask the server for its time of day, in whole seconds.

        Raises:
            ApiError: The server refuses.
            ConnectionFailed: No complete answer came.
            ProtocolError: It does not say.
        """
        path = "/version"
        try:
            said = await self._answer("GET", path, None, await self._headers(None))
        except (aiohttp.ClientError, OSError) as error:
            raise self._failed("GET", path, str(error) or type(error).__name__) from error
        if said.status >= 300:
            self._refuse(said.status, said.body, said.header("Retry-After"), may_renew=False)
        try:
            return parsedate_to_datetime(said.header("Date") or "")
        except ValueError as error:
            raise ProtocolError(f"GET {path}: the answer has no date") from error

    async def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        more: Mapping[str, str] | None,
    ) -> bytes:
        kind = content_type if body is not None else None
        target = f"{path}?{urlencode(query)}" if query else path
        for may_renew in (True, False):
            headers = await self._headers(kind)
            if more:
                headers.update(more)
            said = await self._answer(method, target, body, headers)
            if said.status < 300:
                return said.body
            self._refuse(said.status, said.body, said.header("Retry-After"), may_renew)
        raise AssertionError("the second round returns or raises")

    async def _answer(
        self, method: str, target: str, body: bytes | None, headers: dict[str, str]
    ) -> Answer:
        if self._kept is not None:
            return await self._kept.ask(method, target, headers, body)
        async with self._send(method, target, body, headers, _ONE) as response:
            head = b"".join(b"\r\n%s: %s" % pair for pair in response.raw_headers)
            return Answer(response.status, head, await response.read())

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], idle_timeout: float | None
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """Open a GET whose body comes bit by bit, as long as the server likes.

        Args:
            path: Absolute path under the server's root.
            query: Query parameters.
            idle_timeout: Seconds without a byte after which the connection counts as dead.

        Raises:
            ApiError: The server refuses.
            ConnectionFailed: No answer, or (inside the context) the stream broke.
            WatchTimeout: (Inside the context.) Nothing came for `idle_timeout`.
        """
        patience = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT, sock_read=idle_timeout
        )
        opened = False
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            for may_renew in (True, False):
                headers = await self._headers(None)
                async with self._send("GET", target, None, headers, patience) as response:
                    if response.status < 300:
                        opened = True
                        yield response.content
                        return
                    retry_after = response.headers.get("Retry-After")
                    said = await response.read()
                    self._refuse(response.status, said, retry_after, may_renew)
        except (aiohttp.ClientError, OSError) as error:
            failed = self._failed("GET", path, str(error) or type(error).__name__)
            if opened and isinstance(error, aiohttp.SocketTimeoutError):
                raise WatchTimeout(str(failed)) from error
            raise failed from error

    def _send(
        self,
        method: str,
        target: str,
        body: bytes | None,
        headers: dict[str, str],
        patience: aiohttp.ClientTimeout,
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            raise RuntimeError("the client is not open: use it as 'async with Client(...)'")
        # Paths are made of checked segments, so there is nothing left to escape in them.
        return self._session.request(
            method,
            URL(self._connection.server + target, encoded=True),
            data=body,
            headers=headers,
            proxy=self._connection.proxy,
            server_hostname=self._connection.tls_server_name,
            allow_redirects=False,
            timeout=patience,
            read_bufsize=WATCH_BUFFER if patience is not _ONE else 1 << 16,
        )

    def _refuse(self, status: int, body: bytes, retry_after: str | None, may_renew: bool) -> None:
        """Raise what the server answered, unless a renewed credential may change its mind."""
        error = from_answer(status, body, retry_after)
        is_refused = isinstance(error, Unauthorized)
        if not (is_refused and may_renew and self._connection.credentials.invalidate()):
            raise error

    def _failed(self, method: str, path: str, why: str) -> ConnectionFailed:
        return ConnectionFailed(f"{method} {self._connection.server}{path}: {why}")

    async def _headers(self, content_type: str | None) -> dict[str, str]:
        credential = await self._connection.credentials.current()
        certificate = credential.certificate
        if certificate is not self._presented and certificate is not None and self._tls is not None:
            self._connection.present(self._tls, certificate)
            self._presented = certificate
        headers: dict[str, str] = {}
        if credential.authorization is not None:
            headers["Authorization"] = credential.authorization
        if content_type is not None:
            headers["Content-Type"] = content_type
        return headers

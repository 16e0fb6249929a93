"""HTTP to one API server: the only module that imports aiohttp.

Knows connections, credentials, retries and status codes; knows nothing of kinds. JSON is asked for
uncompressed (`identity`): on the networks inside a cluster the CPU of gzip costs more than the
bytes.
"""

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from yarl import URL

from alnair.kube.connection import Connection
from alnair.kube.credentials import Certificate
from alnair.kube.errors import ApiError, ConnectionFailed, Unauthorized, from_answer

USER_AGENT = "alnair"
JSON = "application/json"
#: Seconds until a connection must stand.
CONNECT_TIMEOUT = 10.0
#: Repeats of one call after refusals with Retry-After, as many as client-go makes.
REPEATS = 10
#: Bytes that a watch may buffer before the socket is paused. Bigger reads mean fewer wake-ups in a
#: burst.
WATCH_BUFFER = 1 << 20


def _keepalive(address: Any) -> socket.socket:
    """Make a socket that notices within 30 s that its peer is gone (client-go: HTTP/2 pings)."""
    family, kind, proto, _, _ = address
    sock = socket.socket(family, kind, proto)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        # The names differ by system; without them the system's own (slow) keep-alive stays.
        number = getattr(socket, option, None)
        if number is not None:
            sock.setsockopt(socket.IPPROTO_TCP, number, value)
    return sock


class Transport:
    """A pool of connections with credentials.

    Args:
        connection: Where and as whom.
        max_connections: Requests in flight; more wait for a free connection.
        user_agent: The header of that name.
        timeout: Seconds for one call with its repeats.
        jitter: Numbers in [0, 1) that spread repeats, so that refused clients do not return
            together.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        max_connections: int,
        user_agent: str,
        timeout: float,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._connection = connection
        self._max_connections = max_connections
        self._user_agent = user_agent
        self._timeout = timeout
        self._jitter = jitter
        self._tls = connection.tls()
        self._presented: Certificate | None = None
        self._session: aiohttp.ClientSession | None = None

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
                socket_factory=_keepalive,
                keepalive_timeout=60.0,
            ),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            auto_decompress=False,
            skip_auto_headers=("Content-Type",),
        )

    async def close(self) -> None:
        """Close all connections; requests in flight fail."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        repeat: bool = True,
    ) -> bytes:
        """Send one request and return the body of the answer.

        Args:
            method: HTTP method.
            path: Absolute path under the server's root.
            query: Query parameters, not yet escaped.
            body: The body to send.
            content_type: Its type.
            repeat: Wait and send again when the server refuses with Retry-After.

        Raises:
            ApiError: The server refuses.
            ConnectionFailed: No complete answer came in time; the request may have acted.
        """
        deadline = time.monotonic() + self._timeout
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    return await self._once(method, path, query, body, content_type)
            except TimeoutError as error:
                raise ConnectionFailed(
                    f"{method} {path}: no answer in {self._timeout:g} s"
                ) from error
            except ApiError as error:
                attempt += 1
                wait = error.retry_after
                if not repeat or not error.is_transient or wait is None or attempt > REPEATS:
                    raise
                # Never before the stated time; up to half as much later.
                wait = max(wait, 0.1) * (1 + 0.5 * self._jitter())
                if time.monotonic() + wait >= deadline:
                    raise
            await asyncio.sleep(wait)

    async def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
    ) -> bytes:
        async with self._answered(method, path, query, body, content_type) as response:
            return await response.read()

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
            ConnectionFailed: No answer, or (inside the context) the stream broke or fell silent.
        """
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT, sock_read=idle_timeout
        )
        async with self._answered("GET", path, query, None, JSON, timeout) as response:
            yield response.content

    @asynccontextmanager
    async def _answered(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
        patience: aiohttp.ClientTimeout | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            raise RuntimeError("the client is not open: use it as 'async with Client(...)'")
        try:
            for is_last in (False, True):
                async with self._session.request(
                    method,
                    self._url(path, query),
                    data=body,
                    headers=await self._headers(content_type if body is not None else None),
                    proxy=self._connection.proxy,
                    server_hostname=self._connection.tls_server_name,
                    allow_redirects=False,
                    timeout=patience or aiohttp.ClientTimeout(None, sock_connect=CONNECT_TIMEOUT),
                    read_bufsize=WATCH_BUFFER if patience is not None else 1 << 16,
                ) as response:
                    if response.status < 300:
                        yield response
                        return
                    error = from_answer(
                        response.status, await response.read(), response.headers.get("Retry-After")
                    )
                renewed = isinstance(error, Unauthorized) and not is_last
                if not renewed or not self._connection.credentials.invalidate():
                    raise error
        except (aiohttp.ClientError, OSError) as error:
            where = f"{method} {self._connection.server}{path}"
            raise ConnectionFailed(f"{where}: {str(error) or type(error).__name__}") from error

    async def _headers(self, content_type: str | None) -> dict[str, str]:
        credential = await self._connection.credentials.current()
        if (
            credential.certificate is not None
            and credential.certificate is not self._presented
            and self._tls is not None
        ):
            self._connection.present(self._tls, credential.certificate)
            self._presented = credential.certificate
        headers: dict[str, str] = {}
        if credential.authorization is not None:
            headers["Authorization"] = credential.authorization
        if content_type is not None:
            headers["Content-Type"] = content_type
        return headers

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        url = URL(self._connection.server + path)
        return url.with_query(query) if query else url

"""A pool of connections: when one is used again, and when not."""

import asyncio
import gc
import warnings
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from alnair.kube import kept_connections
from alnair.kube.kept_connections import KeptConnections

HEADERS = [("User-Agent", "test"), ("Group", "a"), ("Group", "b")]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Serve = Callable[[Reader, Writer], Awaitable[None]]


@asynccontextmanager
async def pool_to(serve: Serve, limit: int = 8) -> AsyncIterator[KeptConnections]:
    served = []

    async def serving(reader: Reader, writer: Writer) -> None:
        served.append(asyncio.current_task())
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serving, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/base"
    pool = KeptConnections(url, None, None, limit, HEADERS)
    try:
        yield pool
    finally:
        await pool.close()
        server.close()
        for task in filter(None, served):
            await task


class Counting:
    """Answers requests, and counts connections; the first one may be closed after its answer."""

    def __init__(self, *, closes: bool = False) -> None:
        self.closes = closes
        self.connections = 0
        self.requests: list[bytes] = []

    async def __call__(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        number = self.connections
        while True:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            if self.closes and number == 1 and len(self.requests) == 2:
                return  # as a server that closed while the request was on its way
            writer.write(OK)


async def test_requests_one_after_another_share_a_connection() -> None:
    server = Counting()
    async with pool_to(server) as pool:
        for _ in range(3):
            answer = await pool.ask("GET", "/things?limit=1", {"X": "y"}, None)
            assert (answer.status, answer.body) == (200, b"ok")
    assert server.connections == 1
    head = server.requests[0].decode().split("\r\n")
    assert head[0] == "GET /base/things?limit=1 HTTP/1.1"
    assert head[1].startswith("Host: 127.0.0.1:")
    assert head[2:] == ["User-Agent: test", "Group: a", "Group: b", "X: y", "", ""]


async def test_a_header_of_a_request_goes_before_the_pools_of_its_name() -> None:
    server = Counting()
    async with pool_to(server) as pool:
        await pool.ask("GET", "/things", {"user-agent": "another"}, None)
    head = server.requests[0].decode().split("\r\n")
    assert head[2:] == ["Group: a", "Group: b", "user-agent: another", "", ""]


async def test_as_many_requests_are_under_way_as_the_limit_and_no_more() -> None:
    under_way = most = 0
    three = asyncio.Barrier(3)

    async def serve(reader: Reader, writer: Writer) -> None:
        nonlocal under_way, most
        while True:
            await reader.readuntil(b"\r\n\r\n")
            under_way += 1
            most = max(most, under_way)
            await three.wait()
            for _ in range(5):  # a fourth would come meanwhile
                await asyncio.sleep(0)
            under_way -= 1
            writer.write(OK)

    async with pool_to(serve, limit=3) as pool, asyncio.timeout(20):
        await asyncio.gather(*(pool.ask("GET", "/", {}, None) for _ in range(12)))
    assert most == 3


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_kept_connection_that_was_closed_is_replaced(method: str) -> None:
    server = Counting(closes=True)
    async with pool_to(server) as pool:
        await pool.ask("GET", "/", {}, None)
        assert (await pool.ask(method, "/", {}, None)).body == b"ok"
    assert server.connections == 2


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_request_that_may_have_acted_is_not_sent_again(method: str) -> None:
    server = Counting(closes=True)
    async with pool_to(server) as pool:
        await pool.ask("GET", "/", {}, None)
        with pytest.raises(ConnectionError):
            await pool.ask(method, "/", {}, b"")
    assert server.connections == 1


async def test_the_connection_of_a_cancelled_request_is_not_used_again() -> None:
    stalled = asyncio.Event()
    connections = 0

    async def serve(reader: Reader, writer: Writer) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        if connections == 1:
            stalled.set()
            await reader.read()
            return
        writer.write(OK)
        await reader.read()

    async with pool_to(serve) as pool:
        request = asyncio.create_task(pool.ask("GET", "/", {}, None))
        await stalled.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert (await pool.ask("GET", "/", {}, None)).body == b"ok"
    assert connections == 2


async def test_no_socket_is_left_open_wherever_a_request_is_cancelled() -> None:
    with warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always", ResourceWarning)
        cancelled = 0
        for steps in range(20):
            async with pool_to(Counting()) as pool:
                request = asyncio.create_task(pool.ask("GET", "/", {}, None))
                for _ in range(steps):
                    await asyncio.sleep(0)
                cancelled += request.cancel()
                await asyncio.wait([request])
                del request
        gc.collect()
    assert cancelled > 5
    assert [str(one.message) for one in left] == []


async def test_a_connection_that_is_not_used_for_long_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_connections, "_IDLE_SECONDS", 0.01)
    ended = asyncio.Event()

    async def serve(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        assert await reader.read() == b""
        ended.set()

    async with pool_to(serve) as pool:
        await pool.ask("GET", "/", {}, None)
        await ended.wait()


async def test_closing_fails_requests_under_way_and_those_to_come() -> None:
    begun = asyncio.Event()

    async def serve(reader: Reader, writer: Writer) -> None:
        begun.set()
        await reader.read()

    async with pool_to(serve) as pool:
        request = asyncio.create_task(pool.ask("POST", "/", {}, b"{}"))
        await begun.wait()
        await pool.close()
        with pytest.raises(ConnectionError):
            await request
        with pytest.raises(ConnectionError, match="client is closed"):
            await pool.ask("GET", "/", {}, None)


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb"])
async def test_no_header_is_smuggled_into_a_request(value: str) -> None:
    pool = KeptConnections("http://127.0.0.1:1", None, None, 1, [])
    with pytest.raises(ValueError, match="line end"):
        await pool.ask("GET", "/", {"Authorization": value}, None)
    with pytest.raises(ValueError, match="line end"):
        await pool.ask("GET", f"/{value}", {}, None)

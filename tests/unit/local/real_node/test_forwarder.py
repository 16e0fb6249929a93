"""Connections are carried in both directions until either side has had enough."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from alnair.local.real_node import forwarder


@pytest.fixture
async def upper() -> AsyncIterator[int]:
    """A server that says what it hears in upper case, and ends at an empty line; its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (line := await reader.readline()).strip():
            writer.write(line.upper())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@contextlib.asynccontextmanager
async def forwarding(port: int) -> AsyncIterator[int]:
    """Forwards to a port; gives its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    task = asyncio.create_task(forwarder.serve([listener], port))
    yield listener.getsockname()[1]
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_what_one_side_says_the_other_hears(upper: int) -> None:
    async with forwarding(upper) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"one\ntwo\n")
        assert await reader.readline() == b"ONE\n"
        assert await reader.readline() == b"TWO\n"
        writer.write(b"\n")
        assert await reader.read() == b""
        writer.close()


async def test_while_the_server_is_away_callers_are_let_go_and_may_come_again(upper: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        away = nobody.getsockname()[1]
    async with forwarding(away) as port:
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux may enter a network"
)
def test_it_listens_where_the_process_is_and_stays_where_it_was() -> None:
    home = str(Path("/proc/self/ns/net").readlink())
    [listener] = forwarder.listen_inside(os.getpid(), ["127.0.0.1"], 0)
    with listener:
        assert listener.getsockname()[0] == "127.0.0.1"
    assert str(Path("/proc/self/ns/net").readlink()) == home

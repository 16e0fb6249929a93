"""Answers as they come off a connection, however they are cut."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from alnair.kube.http_answers import Answer, AnswerStream

LENGTH = b"HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\ncontent-length: 5\r\n\r\nhello"
CHUNKS = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n1;name=value\r\n \r\n5\r\nworld\r\n0\r\n\r\n"
)
TRAILER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nDigest: 7\r\n\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
NONE = b"HTTP/1.1 204 No Content\r\nDate: today\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what is written, and may be aborted."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Any] = []
        self.aborted = False

    def write(self, data: Any) -> None:
        self.written.append(data)

    def abort(self) -> None:
        self.aborted = True


def asked() -> tuple[AnswerStream, Wire, asyncio.Future[Answer]]:
    stream, wire = AnswerStream(asyncio.get_running_loop()), Wire()
    stream.connection_made(wire)
    return stream, wire, stream.ask(b"GET / HTTP/1.1\r\n\r\n")


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """Whole, byte by byte, and in two at every place."""
    yield [data]
    yield [data[i : i + 1] for i in range(len(data))]
    for at in range(1, len(data)):
        yield [data[:at], data[at:]]


@pytest.mark.parametrize(
    ("data", "status", "body"),
    [
        (LENGTH, 201, b"hello"),
        (CHUNKS, 200, b"hello world"),
        (TRAILER, 200, b"hi"),
        (INTERIM, 201, b"hello"),
        (EMPTY, 200, b""),
        (NONE, 204, b""),
    ],
)
async def test_an_answer_is_read_however_it_is_cut(data: bytes, status: int, body: bytes) -> None:
    for parts in cuts(data):
        stream, wire, answer = asked()
        for part in parts:
            assert not answer.done()
            stream.data_received(part)
        assert (answer.result().status, answer.result().body) == (status, body)
        assert stream.kept
        assert not wire.aborted


async def test_a_connection_serves_one_answer_after_another() -> None:
    stream, wire, answer = asked()
    stream.data_received(CHUNKS)
    assert answer.result().body == b"hello world"
    second = stream.ask(b"second")
    stream.data_received(LENGTH)
    assert second.result().header("Content-Type") == "text/plain"
    assert second.result().header("retry-after") is None
    assert wire.written[-1] == b"second"


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True),
        (b"HTTP/1.1 200\r\n", True),
    ],
)
async def test_the_head_says_whether_another_request_may_follow(head: bytes, kept: bool) -> None:
    stream, _, answer = asked()
    stream.data_received(head + b"Content-Length: 2\r\n\r\nok")
    assert answer.result().body == b"ok"
    assert stream.kept is kept


async def test_a_body_without_a_length_ends_with_the_connection() -> None:
    stream, _, answer = asked()
    stream.data_received(b"HTTP/1.1 200 OK\r\n\r\nall ")
    stream.data_received(b"of it")
    assert not answer.done()
    stream.connection_lost(None)
    assert answer.result().body == b"all of it"
    assert not stream.kept


@pytest.mark.parametrize("at", [0, 10, 60, 70, len(CHUNKS) - 1])
async def test_a_connection_that_ends_within_an_answer_fails_it(at: int) -> None:
    stream, _, answer = asked()
    if at:
        stream.data_received(CHUNKS[:at])
    stream.connection_lost(None)
    with pytest.raises(ConnectionResetError, match="closed the connection"):
        answer.result()
    assert stream.heard is bool(at)
    assert not stream.kept
    await stream.closed


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        LENGTH + b"more",
        CHUNKS + b"more",
        TRAILER + b"more",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfive\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + 70_000 * b"x",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + 70_000 * b"1",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + 70_000 * b"x",
    ],
)
async def test_what_is_no_answer_ends_the_connection(data: bytes) -> None:
    stream, wire, answer = asked()
    stream.data_received(data)
    with pytest.raises(ConnectionError, match="is no HTTP"):
        answer.result()
    assert wire.aborted
    assert not stream.kept


async def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    stream, wire, answer = asked()
    stream.data_received(LENGTH)
    assert answer.result().status == 201
    stream.data_received(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert wire.aborted
    assert not stream.kept

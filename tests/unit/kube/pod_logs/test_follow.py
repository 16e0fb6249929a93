"""A container's log over connections that break: each line once, in its order."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.errors import ApiError, Forbidden
from alnair.kube.pod_logs.follow import follow
from kit.fault_server import serving
from kit.log_server import LogServer, second_of, stamped

NO_WAIT = Backoff(first=0.0, most=0.0)


@pytest.fixture
async def server() -> AsyncIterator[LogServer]:
    async with serving(LogServer()) as server:  # type: ignore[type-var]
        yield server


@pytest.fixture
async def client(server: LogServer) -> AsyncIterator[Client]:
    async with Client(server.connection, timeout=5) as client:
        yield client


async def read(client: Client, **options: object) -> list[bytes]:
    found = follow(client, "n", "p", "main", backoff=NO_WAIT, **options)  # type: ignore[arg-type]
    return [line.text async for lines in found for line in lines]


@pytest.mark.parametrize("seed", range(20))
async def test_each_line_comes_once_wherever_connections_break(
    server: LogServer, client: Client, seed: int
) -> None:
    chance = random.Random(seed)
    # Several lines of one moment; two streams that cross by less than a second.
    seconds = sorted(chance.randrange(6) for _ in range(60))
    server.lines = [
        stamped(second, chance.choice((0, 5, 5, 999_999_999)), f"line {n} {'x' * n}")
        for n, second in enumerate(seconds)
    ]
    size = sum(map(len, server.lines))
    server.cuts.extend(chance.randrange(1, size) for _ in range(8))
    wanted = [line.split(b" ", 1)[1].rstrip(b"\n") for line in server.lines]
    assert await read(client) == wanted
    assert len(server.requests) >= 2


async def test_lines_come_while_they_are_written_and_the_end_ends_it(
    server: LogServer, client: Client
) -> None:
    server.ended = False
    server.lines = [stamped(1, 0, "first")]
    got: list[bytes] = []

    async def reader() -> None:
        async for lines in follow(client, "n", "p", "main", backoff=NO_WAIT):
            got.extend(line.text for line in lines)
            if got == [b"first"]:
                await server.write(stamped(2, 0, "second"))
            elif got == [b"first", b"second"]:
                await server.write(stamped(3, 0, "third"), ended=True)

    await asyncio.wait_for(reader(), 20)
    assert got == [b"first", b"second", b"third"]


async def test_a_silent_connection_is_made_anew_without_repetition(
    server: LogServer, client: Client
) -> None:
    server.ended = False
    server.lines = [stamped(1, 0, "first")]
    got: list[bytes] = []

    async def reader() -> None:
        async for lines in follow(client, "n", "p", "main", silence=0.05, backoff=NO_WAIT):
            got.extend(line.text for line in lines)

    async def writer() -> None:
        async with server.written:
            await server.written.wait_for(lambda: len(server.requests) >= 3)
        await server.write(stamped(2, 0, "second"), ended=True)

    await asyncio.wait_for(asyncio.gather(reader(), writer()), 20)
    assert got == [b"first", b"second"]


async def test_a_container_that_has_not_started_is_waited_for(
    server: LogServer, client: Client
) -> None:
    server.ended = False
    server.refusals.extend((400, 500, 503))
    server.lines = [stamped(1, 0, "first")]

    async def end() -> None:
        async with server.written:
            await server.written.wait_for(lambda: not server.refusals)
        await server.write(ended=True)

    got, _ = await asyncio.wait_for(asyncio.gather(read(client), end()), 20)
    assert got == [b"first"]


async def test_a_refusal_for_good_is_raised(server: LogServer, client: Client) -> None:
    server.refusals.append(403)
    with pytest.raises(Forbidden):
        await read(client)


@pytest.mark.parametrize("code", [400, 404])
async def test_a_container_that_the_pod_has_not_is_refused(
    server: LogServer, client: Client, code: int
) -> None:
    server.refusals.append(code)
    with pytest.raises(ApiError):
        async for _ in follow(client, "n", "p", "another", backoff=NO_WAIT):
            pass


@pytest.mark.parametrize("code", [400, 404])
async def test_a_container_that_ended_without_a_log_has_no_lines(
    server: LogServer, client: Client, code: int
) -> None:
    server.refusals.append(code)
    assert await read(client) == []


async def test_a_container_that_starts_again_goes_on(server: LogServer, client: Client) -> None:
    server.policy = "OnFailure"
    server.exit_code = 1
    server.lines = [stamped(1, 0, "first")]

    async def again() -> None:
        async with server.written:
            await server.written.wait_for(lambda: len(server.requests) >= 3)
        server.exit_code = 0
        await server.write(stamped(30, 0, "second"))

    got, _ = await asyncio.wait_for(asyncio.gather(read(client), again()), 20)
    assert got == [b"first", b"second"]


async def test_another_pod_of_the_same_name_is_not_followed(
    server: LogServer, client: Client
) -> None:
    server.lines = [stamped(1, 0, "of another")]
    assert await read(client, uid="another") == []
    assert not server.requests


async def test_only_lines_from_a_time_on(server: LogServer, client: Client) -> None:
    server.lines = [stamped(second, 500_000_000, str(second)) for second in range(5)]
    since = second_of(server.lines[3])
    assert await read(client, since=since) == [b"3", b"4"]
    assert await read(client, since=since + 0.6) == [b"4"]


async def test_a_line_of_megabytes_is_cut_and_the_next_one_is_whole(
    server: LogServer, client: Client
) -> None:
    server.lines = [stamped(1, 0, "x" * 3_000_000), stamped(2, 0, "y"), stamped(2, 1, "z")[:-1]]
    got = await read(client, most_bytes=1000)
    assert [len(got[0]), *got[1:]] == [1000 - len("2026-01-31T00:00:01.000000000Z "), b"y", b"z"]


async def test_what_the_kubelet_says_itself_is_no_line_of_the_container(
    server: LogServer, client: Client
) -> None:
    server.lines = [b"unable to retrieve container logs for containerd://x\n", stamped(1, 0, "y")]
    assert await read(client) == [b"y"]

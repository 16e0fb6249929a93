"""Where the scheduler serves its health."""

import socket

import aiohttp
import pytest

from alnair.processes.scheduler.endpoints import application
from alnair.processes.scheduler.loop import Decisions
from alnair.serving.server import ServeError, Server


def server(host: str = "127.0.0.1", port: int = 0) -> Server:
    return Server(application(Decisions(), lambda: True), host, port)


async def test_a_port_in_use_is_said_in_one_sentence() -> None:
    async with server() as first:
        port = int(first.url.rsplit(":", 1)[1])
        with pytest.raises(ServeError) as raised:
            await server(port=port).__aenter__()
    assert str(raised.value) == (
        f"health cannot be served on 127.0.0.1:{port}: Address already in use; "
        "choose another address"
    )


async def test_a_host_that_is_none_is_said_in_one_sentence() -> None:
    with pytest.raises(
        ServeError, match=r"^health cannot be served on no such host:0: .*another address$"
    ):
        await server("no such host").__aenter__()


async def test_it_can_be_reached_by_all_addresses() -> None:
    async with server("0.0.0.0") as all_addresses, aiohttp.ClientSession() as session:
        port = all_addresses.url.rsplit(":", 1)[1]
        for address in ("127.0.0.1", "127.0.0.2"):
            async with session.get(f"http://{address}:{port}/metrics") as answer:
                assert answer.status == 200


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
async def test_an_ipv6_address_is_written_as_urls_have_it() -> None:
    try:
        async with server("::1") as one, aiohttp.ClientSession() as session:
            assert one.url.startswith("http://[::1]:")
            async with session.get(f"{one.url}/metrics") as answer:
                assert answer.status == 200
    except ServeError as error:
        pytest.skip(f"no IPv6 here: {error}")

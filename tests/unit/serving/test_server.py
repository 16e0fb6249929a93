"""Where the scheduler serves its health."""

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

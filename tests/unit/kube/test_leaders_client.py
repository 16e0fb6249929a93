"""What a process writes that has lost its lease, or is about to give it back: nothing."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.leaders_client import LeadersClient


class Store:
    """A server that takes a while for writes, and says what it carried out."""

    def __init__(self) -> None:
        self.leads = True
        self.began = asyncio.Event()
        self.done: list[str] = []

    async def answer(self, request: web.BaseRequest) -> web.Response:
        self.began.set()
        if request.method != "GET":
            await asyncio.sleep(0.05)
        self.done.append(request.method)
        return web.json_response({})


@pytest.fixture
async def store() -> Store:
    return Store()


@pytest.fixture
async def client(store: Store) -> AsyncIterator[LeadersClient]:
    runner = web.ServerRunner(web.Server(store.answer), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with Client(Connection(url)) as client:
            yield LeadersClient(client, lambda: store.leads)
    finally:
        await runner.cleanup()


async def ended(task: "asyncio.Task[bytes]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_leader_writes_and_who_is_none_reads(store: Store, client: LeadersClient) -> None:
    await client.raw("PATCH", "/x")
    store.leads = False
    await client.raw("GET", "/x")
    assert store.done == ["PATCH", "GET"]


async def test_who_wakes_without_the_lease_writes_nothing_and_tries_nothing_else(
    store: Store, client: LeadersClient
) -> None:
    store.leads = False
    write = asyncio.create_task(client.raw("DELETE", "/x"))
    done, _ = await asyncio.wait([write], timeout=0.1)
    assert not done
    await ended(write)
    assert store.done == []


async def test_a_write_under_way_ends_before_the_lease_is_given_back(
    store: Store, client: LeadersClient
) -> None:
    write = asyncio.create_task(client.raw("POST", "/x"))
    await store.began.wait()
    await ended(write)
    assert store.done == ["POST"]

"""The condition of a violation is true in the end, whatever becomes of a write."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiohttp import web

from alnair.kube.client import Client
from alnair.model import names
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.violation_conditions import ViolationConditions
from kit.fault_server import FaultServer, serving, status
from kit.manual_clock import Clock, running

POD = OwningPod("default", "greedy", "uid-1", "main")


class Statuses(FaultServer):
    """Pods' conditions; `refusals` answers are refusals before a write is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 0
        self.conditions: dict[str, Any] = {}
        self.writes = 0
        self.answered = asyncio.Queue[str]()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        assert (request.method, request.path.rsplit("/", 1)[1]) == ("PATCH", "status")
        patch = json.loads(await request.text())
        if self.refusals:
            self.refusals -= 1
            return web.json_response(status(503, "ServiceUnavailable"), status=503)
        for one in patch["status"].get("conditions", []):
            self.writes += 1
            self.conditions[one["type"]] = one
        told = self.conditions.get(names.VGPU_VIOLATION, {})
        self.answered.put_nowait(told.get("status", ""))
        return web.json_response({"status": {"conditions": list(self.conditions.values())}})

    async def next(self) -> str:
        """Wait for a request that is answered; return what the condition says then."""
        return await asyncio.wait_for(self.answered.get(), 30)


@pytest.fixture
async def server() -> AsyncIterator[Statuses]:
    async with serving(Statuses()) as found:
        yield cast("Statuses", found)


@pytest.fixture
async def client(server: Statuses) -> AsyncIterator[Client]:
    async with Client(server.connection, timeout=5) as found:
        yield found


async def test_a_condition_whose_clearing_failed_is_cleared_later(
    server: Statuses, client: Client
) -> None:
    clock = Clock()
    conditions = ViolationConditions(client, clock)
    async with running(conditions.run()):
        conditions.add(POD, "main gpu memory", "it holds too much")
        assert await server.next() == "True"
        server.refusals = 3
        conditions.remove(POD, "main gpu memory")
        for _ in range(3):
            await clock.until_next()
        assert await server.next() == "False"
    assert server.writes == 2


async def test_of_what_waits_only_the_last_word_is_written(
    server: Statuses, client: Client
) -> None:
    clock = Clock()
    server.refusals = 1
    conditions = ViolationConditions(client, clock)
    async with running(conditions.run()):
        conditions.add(POD, "main gpu memory", "it holds too much")
        async with asyncio.timeout(30):
            await clock.parked.wait()
        conditions.add(POD, "main gpu compute", "it computes too much")
        assert await server.next() == "True"
        await clock.until_next()  # the try that was set aside finds nothing to do
    said = server.conditions[names.VGPU_VIOLATION]["message"]
    assert said == "it holds too much; it computes too much"
    assert server.writes == 1


@pytest.mark.parametrize("still", [False, True])
async def test_what_an_agent_before_this_one_wrote_is_cleared_unless_it_is_found_again(
    server: Statuses, client: Client, still: bool
) -> None:
    server.conditions[names.VGPU_VIOLATION] = {"type": names.VGPU_VIOLATION, "status": "True"}
    clock = Clock()
    conditions = ViolationConditions(client, clock)
    conditions.take_over([POD, OwningPod()])
    if still:
        conditions.add(POD, "main gpu memory", "it holds too much")
    async with running(conditions.run()):
        await clock.until_next()
        if not still:
            assert await server.next() == "True"  # it was looked at
        assert await server.next() == ("True" if still else "False")
    assert server.writes == 1


async def test_a_pod_of_which_nothing_was_said_is_looked_at_and_not_written(
    server: Statuses, client: Client
) -> None:
    clock = Clock()
    server.conditions["Ready"] = {"type": "Ready", "status": "True"}
    server.conditions[names.VGPU_VIOLATION] = {"type": names.VGPU_VIOLATION, "status": "False"}
    conditions = ViolationConditions(client, clock)
    conditions.take_over([POD])
    async with running(conditions.run()):
        await clock.until_next()
        await server.next()
    assert server.writes == 0

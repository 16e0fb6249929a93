"""A Lease that is renewed only while the driver answers; on a real API server: integration."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from alnair.kube.client import Client
from alnair.processes.agent import agent_lease
from alnair.processes.agent.agent_lease import AgentLease
from kit.described_gpus import DescribedDriver, gpu, inventory
from kit.fault_server import FaultServer, serving, status
from kit.manual_clock import running

LEASE = "/apis/coordination.k8s.io/v1/namespaces/alnair-system/leases/alnair-agent-n"


class Leases(FaultServer):
    """The Lease of one node, renewed; `refusals` answers are refusals before."""

    def __init__(self, refusals: int = 0) -> None:
        super().__init__()
        self.refusals = refusals
        self.renewals: list[str] = []
        self.asked = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        assert (request.method, request.path) == ("PATCH", LEASE)
        self.asked.set()
        if self.refusals:
            self.refusals -= 1
            return web.json_response(status(403, "Forbidden"), status=403)
        patch: dict[str, Any] = json.loads(await request.text())
        self.renewals.append(patch["spec"]["renewTime"])
        return web.json_response({"metadata": {"name": "alnair-agent-n"}})

    async def next(self) -> None:
        """Wait until it is asked once more."""
        self.asked.clear()
        async with asyncio.timeout(30):
            await self.asked.wait()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_lease, "EVERY", 0.01)
    monkeypatch.setattr(agent_lease, "TRY_AGAIN", 0.01)


@asynccontextmanager
async def renewing(server: Leases, driver: DescribedDriver) -> AsyncIterator[None]:
    async with (
        serving(server),
        Client(server.connection) as client,
        running(AgentLease(client, "n", driver).run()),
    ):
        yield


async def test_it_is_not_renewed_while_the_driver_does_not_answer() -> None:
    driver, server = DescribedDriver(inventory(gpu(0))), Leases()
    async with renewing(server, driver):
        await server.next()
        await server.next()
        driver.problem, count = "the driver went away", len(server.renewals)
        for _ in range(30):
            await asyncio.sleep(agent_lease.EVERY)
        assert len(server.renewals) <= count + 1, "more than what was under way"
        driver.problem = ""
        await server.next()


async def test_a_refusal_is_told_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    server = Leases(refusals=3)
    async with renewing(server, DescribedDriver(inventory())):
        while not server.renewals:
            await server.next()
    said = [record.message for record in caplog.records if "is not renewed" in record.message]
    assert len(said) == 1
    assert "alnair-system/alnair-agent-n" in said[0]

"""Events on the node about its GPUs."""

import asyncio
import json
from typing import Any

from aiohttp import web

from alnair.kube.client import Client
from alnair.node.gpu_looks import GpuLook
from alnair.node.health import GpusHealth
from alnair.node.nvml import Usage
from alnair.processes.agent.health_events import HealthEvents
from alnair.sharing.health import HealthRules
from kit.fault_server import FaultServer, serving
from kit.manual_clock import running


class Events(FaultServer):
    """Takes events."""

    def __init__(self) -> None:
        super().__init__()
        self.told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.told.put_nowait(json.loads(await request.text()))
        return web.json_response({})


async def test_a_gpu_that_falls_ill_and_heals_is_told_on_the_node() -> None:
    health = GpusHealth(lambda: None, HealthRules(answers=1, seconds=0.0))
    looks = (
        GpuLook(0.0, 1, {}, {"a": "GPU is lost"}),
        GpuLook(1.0, 1, {"a": Usage(0.0, 0)}, {}),
    )
    told = []
    server = Events()
    async with serving(server), Client(server.connection, timeout=5) as client:
        events = HealthEvents(client, "n", health)
        async with running(events.run()), asyncio.timeout(30):
            for seen in looks:
                health.take(seen)
                told.append(await server.told.get())
    assert [(e["type"], e["reason"], e["message"]) for e in told] == [
        ("Warning", "GpuUnhealthy", "GPU a takes no new containers: GPU is lost"),
        ("Normal", "GpuHealthy", "GPU a is healthy again"),
    ]
    node = told[0]["involvedObject"]
    assert (node["kind"], node["name"], node["uid"]) == ("Node", "n", "n")

"""The process from its begin to its end, at an API server that has nothing."""

import asyncio
import time

import msgspec
from aiohttp import web

from alnair.configuration.profile_assembly import assemble
from alnair.configuration.scheduler_file import Configuration
from alnair.kube.client import Client
from alnair.kube.events import ObjectReference
from alnair.processes.scheduler.configuration_file import Loaded, Source
from alnair.processes.scheduler.process import _DRAIN, _Process
from kit.fault_server import FaultServer, serving

EVENTS = 100


class Api(FaultServer):
    """Keeps who the events are about; each takes it a while."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            body = await request.read()
            await asyncio.sleep(0.001)
            self.told.append(msgspec.json.decode(body)["involvedObject"]["name"])
            return web.json_response({}, status=201)
        return await super().handle(request)


def configured() -> Loaded:
    configuration = Configuration(dry_run=True)
    return Loaded(configuration, assemble(configuration, "test"))


async def test_who_is_stopped_writes_the_events_that_wait_and_then_ends_at_once() -> None:
    api = Api()
    async with serving(api), Client(api.connection, timeout=5) as client:
        process = _Process(configured(), Source(None, configured), client)
        running = asyncio.create_task(process.run())
        async with asyncio.timeout(60):
            while not process._ready:  # noqa: ASYNC110 (nobody is told of it)
                await asyncio.sleep(0.01)
        for number in range(EVENTS):
            about = ObjectReference("Pod", f"p{number}", "n")
            process._reporter.tell(about, "Reason", "message", "Normal")
        began = time.monotonic()
        running.cancel()
        await asyncio.wait([running])
        assert sorted(api.told) == sorted(f"p{number}" for number in range(EVENTS))
        assert time.monotonic() - began < _DRAIN

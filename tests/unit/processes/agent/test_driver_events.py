"""Events on the node about files that its containers would need."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from alnair.kube.client import Client
from alnair.node.kubelet.driver_files import CUDA, DriverPlaces
from alnair.processes.agent import driver_events
from alnair.processes.agent.driver_events import DriverEvents
from kit.described_gpus import DescribedDriver, gpu, inventory
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


async def test_a_file_that_is_missing_is_told_before_any_container_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(driver_events, "EVERY", 0.01)
    (tmp_path / CUDA).touch()
    missing = tmp_path / "license"
    places = DriverPlaces(libraries=tmp_path, also=(missing,))
    driver = DescribedDriver(inventory(gpu(0)))
    server = Events()
    async with (
        serving(server),
        Client(server.connection, timeout=5) as client,
        running(DriverEvents(client, "n", driver, places).run()),
        asyncio.timeout(30),
    ):
        event = await server.told.get()
        missing.touch()
        while True:
            await asyncio.sleep(0.01)
            if "the driver's files are there" in caplog.messages:
                break
    said = f"no container with a GPU can start: {missing} is not there (--driver-also)"
    assert (event["type"], event["reason"], event["message"]) == (
        "Warning",
        "GpuDriverFilesMissing",
        said,
    )
    assert event["involvedObject"]["kind"] == "Node"
    assert caplog.messages.count(said) == 1
    assert server.told.empty()

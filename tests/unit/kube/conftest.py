from collections.abc import AsyncIterator

import pytest

from alnair.kube.client import Client
from kit.fault_server import FaultServer, serving


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with serving(FaultServer()) as server:
        yield server


@pytest.fixture
async def client(server: FaultServer) -> AsyncIterator[Client]:
    async with Client(server.connection, timeout=5) as client:
        yield client

from collections.abc import AsyncIterator

import pytest

from kit import kubelet_sockets
from kit.kubelet_sockets import Kubelet


@pytest.fixture
async def kubelet() -> AsyncIterator[Kubelet]:
    """One that has not started yet."""
    async with kubelet_sockets.kubelet() as found:
        yield found

"""What a real node's agent publishes of its GPUs, waited for."""

import asyncio

from alnair.kube.client import Client
from alnair.kube.resources import NODES
from alnair.local.real_node.settings import NAME
from alnair.model import names
from alnair.processes.agent import closing


async def described(client: Client, seconds: float = 60) -> None:
    """Wait until the real node says what its GPUs are, and offers all that pods ask for."""
    async with asyncio.timeout(seconds):
        while True:
            node = await client.get(NODES, NAME)
            offered = node["status"].get("allocatable", {})
            static = node["metadata"].get("annotations", {}).get(names.GPU_STATIC, "")
            is_there = bool(static) and closing.REASON not in static
            if is_there and all(offered.get(name, "0") != "0" for name in names.GPU_RESOURCES):
                return
            await asyncio.sleep(0.1)

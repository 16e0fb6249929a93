"""Tells on the node's object which GPUs became unhealthy, and which are healthy again."""

import asyncio
from collections.abc import Mapping
from typing import Final

from alnair.kube.client import Client
from alnair.kube.events import EventRecorder, ObjectReference
from alnair.model import names
from alnair.node.health import GpusHealth

#: Reasons of the events.
UNHEALTHY: Final = "GpuUnhealthy"
HEALTHY: Final = "GpuHealthy"


class HealthEvents:
    """Tells while it runs.

    Args:
        client: An open client.
        node: Name of this node.
        health: Of its GPUs.
    """

    def __init__(self, client: Client, node: str, health: GpusHealth) -> None:
        self._recorder = EventRecorder(client, names.AGENT, instance=node)
        # As the kubelet does it: the name for the uid, by which `kubectl describe node` finds them.
        self._node = ObjectReference("Node", node, uid=node)
        self._health = health

    async def run(self) -> None:
        """Tell, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            told: Mapping[str, str] = {}
            changes = 0
            while True:
                changes = await self._health.changed(changes)
                now = self._health.unhealthy
                for uuid in now:
                    if told.get(uuid) != now[uuid]:
                        said = f"GPU {uuid} takes no new containers: {now[uuid]}"
                        self._recorder.record(self._node, UNHEALTHY, said, "Warning")
                for uuid in told.keys() - now.keys():
                    self._recorder.record(self._node, HEALTHY, f"GPU {uuid} is healthy again")
                told = now

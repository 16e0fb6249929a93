"""One look at a cluster: objects and agents, at the same time."""

import asyncio
import time

from alnair.kube.client import Client
from alnair.live.usage import objects
from alnair.live.usage.agents import Agents
from alnair.live.usage.figures import cluster_use
from alnair.live.usage.use import ClusterUse


class Looker:
    """Looks again and again.

    Args:
        client: An open client.
        namespace: Only its pods and owners are told.
    """

    def __init__(self, client: Client, namespace: str | None = None) -> None:
        self._client = client
        self._namespace = namespace
        self._agents = Agents(client)

    async def look(self) -> ClusterUse:
        """Return what is now.

        Raises:
            KubeError: The cluster cannot be read.
        """
        seen, (live, notes) = await asyncio.gather(
            objects.read(self._client, self._namespace), self._agents.ask()
        )
        return cluster_use(seen, live, time.time(), self._namespace, notes)

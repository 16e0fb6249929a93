"""The node's agent renews a Lease, by which the scheduler knows that what it wrote still counts.

Whoever reads it waits 40 s (docs/reference/names.md). So an agent that stops leaves its Lease to
expire: one that is started again at once, as in an upgrade, is not missed. The Lease belongs to the
node's object, with which it is removed.
"""

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any, Final

from alnair.kube.client import Client
from alnair.kube.errors import KubeError, NotFound
from alnair.kube.resources import LEASES, NODES
from alnair.model import names
from alnair.node.gpu_driver import GpuDriver

#: Seconds between renewals, and until the next try where one failed.
EVERY: Final = 10.0
TRY_AGAIN: Final = 2.0
#: Seconds after which others take the agent for dead.
DURATION: Final = 40

_log = logging.getLogger(__name__)


class AgentLease:
    """Renews the Lease while it runs and the driver answers.

    Args:
        client: An open client.
        node: Name of this node.
        driver: Knows the GPUs.
    """

    def __init__(self, client: Client, node: str, driver: GpuDriver) -> None:
        self._client = client
        self._node = node
        self._driver = driver
        self._name = names.AGENT_LEASE_PREFIX + node

    async def run(self) -> None:
        """Renew it until cancelled, from the moment at which the driver is there."""
        await self._driver.reopened(0)
        problem = ""
        while True:
            if not self._driver.problem:
                before, problem = problem, await self._renewed()
                if problem and problem != before:
                    text = (
                        "lease %s/%s is not renewed, so what is measured here counts as stale: %s"
                    )
                    _log.warning(text, names.NAMESPACE, self._name, problem)
            await asyncio.sleep(TRY_AGAIN if problem else EVERY)

    async def _renewed(self) -> str:
        """Renew it; returns why not, or ""."""
        try:
            await self._renew()
        except KubeError as error:
            return str(error)
        return ""

    async def _renew(self) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "holderIdentity": self._node,
            "leaseDurationSeconds": DURATION,
            "renewTime": now,
        }
        try:
            await self._client.merge_patch(LEASES, self._name, {"spec": spec}, names.NAMESPACE)
        except NotFound:
            await self._create({**spec, "acquireTime": now})

    async def _create(self, spec: dict[str, Any]) -> None:
        node = await self._client.get(NODES, self._node)
        owner = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": self._node,
            "uid": node["metadata"]["uid"],
        }
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                "name": self._name,
                "namespace": names.NAMESPACE,
                "ownerReferences": [owner],
            },
            "spec": spec,
        }
        await self._client.create(LEASES, lease)

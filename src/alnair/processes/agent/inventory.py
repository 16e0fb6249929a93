"""Keeps the node's object true about its GPUs: labels, `gpu-static`, and resources of slices.

All is written by server-side apply, when the object says something else, whoever made it so. A
kubelet copies to allocatable what capacity says of such resources; one that starts without its
checkpoint sets them to zero (kubelet_node_status.go, reconcileExtendedResource).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.errors import ApiError, Conflict, KubeError, NotFound
from alnair.kube.informer import Change, Informer
from alnair.kube.resources import NODES
from alnair.model import names
from alnair.model.api_types import GpuStatic, GpuStaticEntry
from alnair.node.gpu_driver import GpuDriver
from alnair.processes.agent.node_facts import is_said, labels_of, resources_of, static_of
from alnair.processes.agent.node_object import FIELD_MANAGER, NodeObject, NodeSays, said

#: Most seconds until news of the GPUs are told; those of the node's object are heard at once.
EVERY: Final = 2.0
#: Least seconds between two writes: another who insists on something else is not fought faster.
PAUSE: Final = 1.0
#: The same while the node is being closed: the agent ends, and has little time to say so.
_CLOSING: Final = 0.05
_SOON: Final = 0.01

_NODES: Final = NODES.typed(NodeObject)
_log = logging.getLogger(__name__)


class InventoryPublisher:
    """Writes while it runs, from the moment at which the driver is there.

    Args:
        client: An open client.
        node: Name of this node.
        driver: Knows the GPUs.
        soft_factor: How far soft compute shares may be promised beyond a GPU's time.
        serves_mig: Whether MIG devices are offered here.
        problems: Says why nothing may start on a GPU, by its UUID; it is asked every few seconds.
    """

    def __init__(
        self,
        client: Client,
        node: str,
        driver: GpuDriver,
        *,
        soft_factor: float = 1.0,
        serves_mig: bool = False,
        problems: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._client = client
        self._node = node
        self._driver = driver
        self._soft_factor = soft_factor
        self._serves_mig = serves_mig
        self._problems = problems
        self._says: NodeSays | None = None
        self._news = asyncio.Event()
        #: Why nothing may start on any GPU; "": it may.
        self._closed = ""
        self._closes = asyncio.Event()

    async def run(self) -> None:
        """Keep the object true until cancelled."""
        await self._driver.reopened(0)
        informer = Informer(
            self._client, _NODES, said, self._hear, field_selector=f"metadata.name={self._node}"
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run())
            group.create_task(self._keep())

    async def close(self, reason: str) -> None:
        """Tell of all GPUs that nothing may start on them, until another agent tells otherwise.

        Amounts stay as they are: the kubelet refuses who is bound already and asks for more.

        Args:
            reason: Why.
        """
        self._closed = reason
        self._closes.set()
        while self._says is not None and not self._is_true(self._says):
            self._news.set()
            await asyncio.sleep(_SOON)

    def _hear(self, change: Change[NodeSays]) -> None:
        if change.key != ("", ""):
            self._says = change.new
            self._news.set()

    async def _keep(self) -> None:
        backoff = Backoff()
        while True:
            self._news.clear()
            pause = 0.0
            # Without the object there is nothing to tell it to: its kubelet makes it.
            if self._says is not None and not self._is_true(self._says):
                try:
                    await self._write()
                    backoff.reset()
                    pause = PAUSE
                except (Conflict, NotFound):
                    pause = PAUSE  # it changed, or went, meanwhile: look again
                except KubeError as error:
                    pause = backoff.next(error.retry_after if isinstance(error, ApiError) else None)
                    text = "node %s does not tell of its GPUs, next try in %.1f s: %s"
                    _log.warning(text, self._node, pause, error)
            await self._rest(pause)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._news.wait()

    async def _rest(self, seconds: float) -> None:
        """Wait so long, or next to nothing while the node is being closed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closes.wait()
                await asyncio.sleep(_CLOSING)

    def _is_true(self, says: NodeSays) -> bool:
        labels, gpus, resources = self._wanted(says)
        ours = {key: text for key, text in says.labels.items() if key not in says.theirs}
        return (
            labels == ours
            and is_said(gpus, says.static)
            and all(amounts == resources for amounts in says.resources)
        )

    def _wanted(
        self, says: NodeSays
    ) -> tuple[dict[str, str], list[GpuStaticEntry], dict[str, int]]:
        inventory = self._driver.inventory
        found = labels_of(inventory, serves_mig=self._serves_mig)
        labels = {k: text for k, text in found.items() if k not in says.theirs}
        problems = self._problems()
        resources = resources_of(inventory, problems, self._soft_factor)
        if self._closed:
            problems = {gpu.uuid: self._closed for gpu in inventory.gpus}
        return labels, static_of(inventory, says, problems), resources

    async def _write(self) -> None:
        node = await self._client.get(_NODES, self._node)
        says = said(node)
        labels, gpus, resources = self._wanted(says)
        compute = resources[names.VGPU_COMPUTE]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        text = says.static
        if not is_said(gpus, text):
            text = msgspec.json.encode(GpuStatic(v=1, t=now, gpus=gpus)).decode()
        # Only while it is as it was read: a label that another has just set stays.
        version = node.metadata.resource_version
        metadata = {"labels": labels, "annotations": {names.GPU_STATIC: text}}
        amounts = {name: str(amount) for name, amount in resources.items()}
        status = {"capacity": amounts, "allocatable": amounts}
        # In between, the compute must not seem to be of too few GPUs: that reads as a soft factor.
        if any((before.get(names.VGPU_COMPUTE) or 0) > compute for before in says.resources):
            version = await self._apply({"status": status}, version, subresource="status")
            await self._apply({"metadata": metadata}, version)
        else:
            version = await self._apply({"metadata": metadata}, version)
            await self._apply({"status": status}, version, subresource="status")
        _log.info("node %s tells of %d GPUs: %s", self._node, len(gpus), amounts)

    async def _apply(
        self, fields: dict[str, Any], version: str, subresource: str | None = None
    ) -> str:
        """Write while the object has this version; return which it has then."""
        own = {"name": self._node, "resourceVersion": version}
        metadata = {**fields.get("metadata", {}), **own}
        node = {"apiVersion": "v1", "kind": "Node", **fields, "metadata": metadata}
        written = await self._client.apply(
            _NODES, node, field_manager=FIELD_MANAGER, subresource=subresource
        )
        return written.metadata.resource_version

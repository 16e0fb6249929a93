"""Takes back what an agent wrote about its node, once it is gone for good.

The kubelet itself takes back what it counts, such as `nvidia.com/gpu`: to 0 at once, away in five
minutes.
"""

import asyncio
from typing import Any, Final

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import LEASES, NODE_RESOURCE_TOPOLOGIES, NODES, PODS, Manifest
from alnair.model import names
from alnair.processes.agent.node_object import FIELD_MANAGER

#: Seconds that agents have to end, and between looks.
PATIENCE: Final = 60.0
_EVERY: Final = 1.0
#: What agents write by other means than server-side apply.
_OURS: Final = (names.VGPU_TIER, names.VGPU_PROMISE, names.GPU_STATIC)
_AGENTS: Final = "app.kubernetes.io/component=agent"


class AgentsRunError(Exception):
    """Agents run still, and would write it all again; says which."""


async def agents_ended(client: Client, patience: float = PATIENCE) -> None:
    """Wait until no agent of the chart runs in the cluster.

    Raises:
        AgentsRunError: Some run still.
    """
    until = asyncio.get_running_loop().time() + patience
    while True:
        found = await client.list(PODS, names.NAMESPACE, label_selector=_AGENTS)
        if not found.items:
            return
        if asyncio.get_running_loop().time() > until:
            running = ", ".join(sorted(pod["spec"].get("nodeName", "") for pod in found.items))
            raise AgentsRunError(f"agents run still on {running}: remove them first")
        await asyncio.sleep(_EVERY)


async def forget(client: Client, node: str) -> list[str]:
    """Remove what agents wrote about a node; what others wrote stays.

    Returns:
        What was removed: labels, annotations and amounts by their keys, objects by their kinds.

    Raises:
        NotFound: There is no such node.
    """
    found = await client.get(NODES, node)
    labels, annotations = (written(found, part) for part in ("labels", "annotations"))
    if labels or annotations:
        metadata = {"labels": dict.fromkeys(labels), "annotations": dict.fromkeys(annotations)}
        await client.merge_patch(NODES, node, {"metadata": metadata})
    capacity = found.get("status", {}).get("capacity") or {}
    amounts = sorted(set(names.SLICE_RESOURCES) & set(capacity))
    if amounts:
        none = dict.fromkeys(amounts)
        status = {"status": {"capacity": none, "allocatable": none}}
        await client.merge_patch(NODES, node, status, subresource="status")
    removed = [*labels, *annotations, *amounts]
    for resource, name, namespace in (
        (LEASES, names.AGENT_LEASE_PREFIX + node, names.NAMESPACE),
        (NODE_RESOURCE_TOPOLOGIES, node, None),
    ):
        try:
            await client.delete(resource, name, namespace)
        except NotFound:
            continue
        removed.append(resource.kind)
    return removed


def knows(node: Manifest) -> bool:
    """Tell whether an agent has written about a node."""
    capacity = node.get("status", {}).get("capacity") or {}
    slices = set(names.SLICE_RESOURCES) & set(capacity)
    return bool(written(node, "labels") or written(node, "annotations") or slices)


def written(node: Manifest, part: str) -> list[str]:
    """The keys of labels or annotations that agents wrote."""
    metadata: dict[str, Any] = node["metadata"]
    ours = {
        key.removeprefix("f:")
        for writer in metadata.get("managedFields") or ()
        if writer.get("manager") == FIELD_MANAGER
        for key in writer.get("fieldsV1", {}).get("f:metadata", {}).get(f"f:{part}", {})
    }
    return sorted(
        key
        for key in metadata.get(part) or {}
        if key in ours or key in _OURS or _is_load(part, key)
    )


def _is_load(part: str, key: str) -> bool:
    number = key.removeprefix(names.GPU_LOAD)
    return part == "annotations" and number != key and number.isdecimal()

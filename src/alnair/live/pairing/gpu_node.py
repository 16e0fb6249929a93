"""The node whose GPU is measured on."""

import msgspec

from alnair.kube.client import Client
from alnair.kube.resources import NODES, Manifest
from alnair.model import api_types, names
from alnair.model.near_names import near
from alnair.node.pairing.workload import RunError
from alnair.sharing.tiers import Tier


class GpuNode(msgspec.Struct, frozen=True):
    """A node with GPUs that give slices.

    Attributes:
        name: Of the node.
        model: Of its GPUs, as its label spells it.
        memory_mib: Of one of them.
        offers_mps: Whether its agent runs an MPS daemon that is healthy.
    """

    name: str
    model: str
    memory_mib: int
    offers_mps: bool = False


def check_mps(node: GpuNode) -> None:
    """Refuse to measure by MPS where there is none: no container would start.

    Raises:
        RunError: The node does not offer it.
    """
    if not node.offers_mps:
        raise RunError(
            f"node {node.name} offers no MPS (its label {names.VGPU_TIER} says so): start its agent"
            " with --mps (chart: agent.mps.enabled), see why not with 'alnair agent status' on the"
            " node, or measure with another --mode"
        )


async def gpu_node(client: Client, wanted: str | None) -> GpuNode:
    """Return the node to measure on: the one that is named, or the only one with GPUs.

    Raises:
        RunError: There is no such node, it has no GPUs, or several have.
    """
    nodes = (await client.list(NODES)).items
    names_ = sorted(node["metadata"]["name"] for node in nodes)
    able = [found for node in nodes if (found := _described(node))]
    if wanted is None:
        # What only simulates a node runs no containers.
        able = [one for one in able if one.name not in _simulated(nodes)]
        if len(able) == 1:
            return able[0]
        told = ", ".join(sorted(one.name for one in able)) or "none"
        raise RunError(f"say on which node to measure (--node); with slices of GPUs: {told}")
    for one in able:
        if one.name == wanted:
            return one
    if wanted in names_:
        raise RunError(
            f"node {wanted} has no GPUs that give slices: its agent has written none"
            f" ({names.GPU_STATIC}); see alnair doctor"
        )
    close = near(wanted, names_)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names_)}"
    raise RunError(f"there is no node {wanted}: {hint}")


def _simulated(nodes: list[Manifest]) -> set[str]:
    """Return the nodes of which kwok says that it plays them."""
    return {
        node["metadata"]["name"]
        for node in nodes
        if "kwok.x-k8s.io/node" in (node["metadata"].get("annotations") or {})
    }


def _described(node: Manifest) -> GpuNode | None:
    text = (node["metadata"].get("annotations") or {}).get(names.GPU_STATIC)
    try:
        gpus = msgspec.json.decode(text or "", type=api_types.GpuStatic).gpus
    except msgspec.MsgspecError:
        return None
    if not gpus:
        return None
    meta = node["metadata"]
    tier = (meta.get("labels") or {}).get(names.VGPU_TIER, "").rpartition("-")[2]
    memory = min(gpu.memory_mib for gpu in gpus)
    return GpuNode(meta["name"], gpus[0].model, memory, tier == Tier.MPS.value)

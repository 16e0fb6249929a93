"""A node's object says which tiers it offers, on a real API server."""

import msgspec

from alnair.kube.client import Client
from alnair.kube.resources import NODES
from alnair.model import names
from alnair.processes.agent.node_label import tell_node
from alnair.sharing.tiers import NodeFacts, offer


async def test_a_node_is_labelled_with_its_tiers_and_keeps_its_other_labels(client: Client) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H200"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "tiers", "labels": labels}}
    await client.create(NODES, node)
    try:
        for driver, label in (("615.36.01", "A-B"), ("580.65.06", "B-B")):
            found = offer(NodeFacts(driver=driver))
            await tell_node(client, "tiers", found)
            raw = await client.raw("GET", NODES.item("tiers"))
            metadata = msgspec.json.decode(raw, type=dict)["metadata"]
            assert metadata["labels"].items() >= {**labels, names.VGPU_TIER: label}.items()
            assert metadata["annotations"][names.VGPU_PROMISE] == found.promise
    finally:
        await client.delete(NODES, "tiers")

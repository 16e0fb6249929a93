"""Lets a node's object say which tiers of isolation the node offers."""

from alnair.kube.client import Client
from alnair.kube.resources import NODES
from alnair.model import names
from alnair.sharing.tiers import Offer


async def tell_node(client: Client, node: str, offer: Offer) -> None:
    """Write the label and, as an annotation, what it promises in words.

    Raises:
        KubeError: The API server refused or was not reached.
    """
    patch = {
        "metadata": {
            "labels": {names.VGPU_TIER: offer.label},
            "annotations": {names.VGPU_PROMISE: offer.promise},
        }
    }
    await client.merge_patch(NODES, node, patch)

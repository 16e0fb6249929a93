"""Whether workloads that are measured have the same GPU, and nobody else has it."""

from collections.abc import Sequence

import msgspec

from alnair.kube.client import Client
from alnair.kube.resources import PODS, Manifest
from alnair.model import api_types, names
from alnair.model.plurals import counted
from alnair.node.pairing.workload import RunError

_ENDED = ("Succeeded", "Failed")


async def check_alone_on_gpu(client: Client, pods: Sequence[Manifest], node: str) -> None:
    """Refuse to measure what would not tell how the pods get on with one another.

    Args:
        client: May list pods of all namespaces.
        pods: Those that are measured; they run.
        node: Where.

    Raises:
        RunError: They have several GPUs, or somebody else uses theirs.
    """
    mine = {pod["metadata"]["uid"] for pod in pods}
    wanted = {uuid for pod in pods for uuid in gpus_of(pod)}
    if len(wanted) != 1:
        told = ", ".join(sorted(wanted)) or "unknown"
        raise RunError(
            f"the two are on {counted(len(wanted), 'GPU')} of {node} ({told}):"
            " leave room for both on one, or name a node that has a single free GPU (--node)"
        )
    here = await client.list(PODS, field_selector=f"spec.nodeName={node}")
    for pod in here.items:
        meta, phase = pod["metadata"], pod.get("status", {}).get("phase")
        if meta["uid"] in mine or phase in _ENDED or meta.get("deletionTimestamp"):
            continue
        if wanted & gpus_of(pod):
            raise RunError(
                f"{meta['namespace']}/{meta['name']} uses the same GPU ({next(iter(wanted))}): it"
                " would be beside both; name a node where a GPU is free (--node)"
            )


def gpus_of(pod: Manifest) -> set[str]:
    """Return the UUIDs of a pod's GPUs, as its annotation says; none where it says nothing."""
    text = (pod["metadata"].get("annotations") or {}).get(names.GPU_ASSIGNMENT)
    if not text:
        return set()
    try:
        found = msgspec.json.decode(text, type=api_types.GpuAssignment)
    except msgspec.MsgspecError:
        return set()
    return {part.uuid for parts in found.containers.values() for part in parts}

"""From an assignment to what the vGPU server is told of a container."""

from collections.abc import Iterable

import msgspec

from alnair.model.api_types import AssignedGpu
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.sharing.matching.node_state import PodOnNode


def name(pod_uid: str, container: str) -> str:
    """Return what a container's slices are called on its node: 100 characters at most."""
    return f"{pod_uid}-{container}"


def slices(pod: PodOnNode, container: str, parts: Iterable[AssignedGpu]) -> ContainerSlices:
    """Return what a container may use, which its pod's processes tell by its socket.

    Of whole GPUs all: then its calls are counted only.
    """
    return ContainerSlices(
        name=name(pod.uid, container),
        who=ContainerMatch(pod=pod.uid),
        shares=tuple(_share(pod, part) for part in parts),
        pod=OwningPod(pod.namespace, pod.name, pod.uid, container),
    )


def _share(pod: PodOnNode, part: AssignedGpu) -> Share:
    demand = pod.demand
    assert demand is not None
    if part.whole:  # its calls are counted, nothing is limited
        return Share(part.uuid)
    swap = demand.swap_mib(part.memory_mib)
    low = demand.low_priority
    share = Share(
        part.uuid, part.memory_mib, low_priority=low, swap_mib=swap, borrows=demand.borrows
    )
    if demand.mps:  # the MPS server bounds the SMs, and shares of time would come on top
        return share
    # Without a share of the GPU's time, it has what the others leave.
    soft = part.compute == 0 or demand.soft
    return msgspec.structs.replace(share, compute_percent=part.compute, soft=soft)

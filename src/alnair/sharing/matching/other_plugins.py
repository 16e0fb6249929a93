"""GPUs that other device plugins gave to containers, such as NVIDIA's own: they are held whole.

Read from the kubelet's checkpoint and not from its pod-resources API, which leaves out init
containers and does not tell who answered `Allocate`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from alnair.model.api_types import AssignedGpu
from alnair.sharing.matching.node_state import Allocation, NodeGpu, PodOnNode

#: Whatever NVIDIA's plugin calls a GPU: `nvidia.com/gpu`, `nvidia.com/gpu.shared` and so on.
_RESOURCES: Final = "nvidia.com/"
#: NVIDIA's plugin numbers the replicas of a GPU that it shares by time: GPU-8a1b…::3.
_REPLICA: Final = "::"

#: Pod uid → container → parts.
Given = dict[str, dict[str, tuple[AssignedGpu, ...]]]


def given_by_others(
    allocations: Iterable[Allocation],
    pods: Mapping[str, PodOnNode],
    gpus: Sequence[NodeGpu],
    ours: str,
) -> Given:
    """Return what containers were given by other plugins; each GPU counts as given whole.

    MIG devices are not told: a GPU in MIG mode takes no slices anyway.

    Args:
        allocations: The kubelet's checkpoint. Of pods that are gone it keeps entries until the next
            admission, which is before any start that this could hold up.
        pods: Bound to this node, by uid. One that is unknown counts: the kubelet runs pods from
            files, which have another uid at the API server.
        gpus: Of this node.
        ours: How the names begin that our own `Allocate` answers.
    """
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    found: Given = {}
    for one in allocations:
        pod = pods.get(one.pod_uid)
        is_theirs = one.resource.startswith(_RESOURCES) and not one.device.startswith(ours)
        if not is_theirs or (pod is not None and pod.is_ended):
            continue
        uuids = {given.partition(_REPLICA)[0] for given in one.ids} & by_uuid.keys()
        parts = tuple(
            AssignedGpu(gpu.uuid, gpu.index, gpu.memory_mib, 100, whole=True)
            for gpu in gpus
            if gpu.uuid in uuids
        )
        if parts:
            containers = found.setdefault(one.pod_uid, {})
            containers[one.container] = containers.get(one.container, ()) + parts
    return found

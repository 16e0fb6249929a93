"""Builders of what `alnair.sharing.matching` decides on: say what matters, the rest is harmless."""

from collections.abc import Mapping, Sequence

from alnair.model import names
from alnair.model.api_types import AssignedGpu, GpuAssignment
from alnair.model.gpu_demand import ContainerGpus, gpu_demand
from alnair.sharing.matching.node_state import Allocation, NodeGpu, PodOnNode

#: MiB of each GPU.
MEMORY = 10_000
TIME = "2026-01-31T12:00:00Z"


def node_gpus(count: int = 2, numa: Sequence[int | None] = ()) -> list[NodeGpu]:
    """GPUs named GPU-0 and so on; near no NUMA node unless told."""
    return [NodeGpu(f"GPU-{i}", i, MEMORY, numa[i] if numa else None) for i in range(count)]


def asks(
    name: str = "main",
    *,
    memory: int = 0,
    compute: int = 0,
    whole: int = 0,
    init: bool = False,
    sidecar: bool = False,
) -> ContainerGpus:
    """A container that asks for MiB and percent of a GPU, or for whole ones."""
    amounts = {names.VGPU_MEMORY: memory, names.VGPU_COMPUTE: compute, names.GPU: whole}
    return ContainerGpus(name, {k: v for k, v in amounts.items() if v}, init or sidecar, sidecar)


def slice_of(index: int, memory: int, compute: int = 0) -> AssignedGpu:
    """A part of the GPU with this index."""
    return AssignedGpu(f"GPU-{index}", index, memory, compute, whole=False)


def whole_gpu(index: int) -> AssignedGpu:
    """All of the GPU with this index."""
    return AssignedGpu(f"GPU-{index}", index, MEMORY, 100, whole=True)


def pod_on_node(
    name: str,
    *containers: ContainerGpus,
    given: Mapping[str, Sequence[AssignedGpu]] | None = None,
    soft: bool = False,
    created: float = 0.0,
    is_ended: bool = False,
    is_leaving: bool = False,
) -> PodOnNode:
    """A pod with its uid `uid-NAME`; without `given` it has no assignment."""
    parts = None if given is None else {key: list(value) for key, value in given.items()}
    return PodOnNode(
        uid=f"uid-{name}",
        namespace="team",
        name=name,
        created=created,
        demand=gpu_demand(containers, {names.VGPU_POLICY: "soft"} if soft else {}),
        assignment=None if parts is None else GpuAssignment(1, TIME, parts),
        is_ended=is_ended,
        is_leaving=is_leaving,
    )


def allocated(pod: PodOnNode, container: str, *ids: str, resource: str = names.VGPU) -> Allocation:
    """What the kubelet allocated to a container."""
    device = f"alnair/slot={pod.name}-{container}"
    return Allocation(pod.uid, container, resource, frozenset(ids), device)

"""Nodes of eight GPUs, and pods that want whole ones."""

from alnair.model import names
from alnair.model.nodes import Gpu, Node
from alnair.model.workload import GpuDemand, GpuRequest, PodSpec

GPUS = 8
MEMORY_MIB = 40960
_GIB = 2**30


def make_node(number: int) -> Node:
    """A node on which nothing runs."""
    name = f"node-{number:05}"
    gpus = tuple(Gpu(f"GPU-{name}-{i}", i, "A100", MEMORY_MIB) for i in range(GPUS))
    allocatable = {"cpu": 64_000, "memory": 512 * _GIB, "pods": 110, names.GPU: GPUS}
    return Node(name, allocatable, {}, gpus=gpus)


def spec(gpus: int) -> PodSpec:
    """What a pod asks for: GPUs, with a core and little memory for each."""
    demand = GpuDemand((GpuRequest("main", gpus),), gpus)
    requests = {"cpu": 1000 * gpus, "memory": _GIB, "pods": 1, names.GPU: gpus}
    return PodSpec(tuple(sorted(requests.items())), 1000 * gpus, _GIB, gpu=demand)

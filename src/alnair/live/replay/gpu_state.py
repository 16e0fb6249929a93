"""What is left of every node, GPU by GPU, as nodes and pods read back from the API server say."""

from collections.abc import Iterable, Sequence

import msgspec

from alnair.kube.client import Client
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.wire import NodeWire, PodWire
from alnair.kube.resources import NODES, PODS
from alnair.model import names
from alnair.model.nodes import Node
from alnair.model.workload import Pod
from alnair.scheduler.published.fragmentation import FreeNode
from alnair.traces.openb import WHOLE

#: Milli-GPUs of a percent.
_PERCENT = WHOLE // 100


class GpuState(msgspec.Struct, frozen=True):
    """The GPUs of a cluster, in milli-GPUs."""

    capacity: int
    allocated: int
    free: tuple[FreeNode, ...]


async def read(client: Client) -> GpuState:
    """Read all nodes and pods of the cluster."""
    project = PodProjector()
    pods = [project(pod) for pod in (await client.list(PODS.typed(PodWire))).items]
    nodes = [project_node(node) for node in (await client.list(NODES.typed(NodeWire))).items]
    return gpu_state(nodes, pods)


def gpu_state(nodes: Iterable[Node], pods: Iterable[Pod]) -> GpuState:
    """Add up what pods hold of the nodes' GPUs.

    A pod without an assignment (another scheduler's) is counted on the lowest free GPUs, its slice
    on the fullest GPU that has room for it.
    """
    on_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node and not pod.finished:
            on_node.setdefault(pod.node, []).append(pod)
    capacity = allocated = 0
    left = []
    for node in nodes:
        count = node.gpu_count
        held = on_node.get(node.name, [])
        free = _free(node, count, held)
        capacity += WHOLE * count
        allocated += WHOLE * count - sum(free)
        cpu = node.allocatable.get("cpu", 0) - sum(
            dict(p.spec.requests).get("cpu", 0) for p in held
        )
        left.append(FreeNode(cpu, tuple(free), node.labels.get(names.GPU_MODEL_LABEL, "")))
    return GpuState(capacity, allocated, tuple(left))


def _free(node: Node, count: int, pods: Sequence[Pod]) -> list[int]:
    """Return the free milli-GPUs of each GPU of a node."""
    free = [WHOLE] * count
    slots = {gpu.uuid: slot for slot, gpu in enumerate(node.gpus)}
    for pod in pods:
        init = pod.spec.gpu.init_containers() if pod.spec.gpu else frozenset()
        # An init container has ended when the others run: what counts is the most at one moment.
        stay: dict[int, int] = {}
        peak: dict[int, int] = {}
        for container, shares in pod.assignment:
            for share in shares:
                slot = slots.get(share.uuid, count)
                milli = WHOLE if share.whole else _PERCENT * share.compute
                if container in init:
                    peak[slot] = max(peak.get(slot, 0), milli)
                else:
                    stay[slot] = stay.get(slot, 0) + milli
        for slot in (stay.keys() | peak.keys()) - {count}:
            free[slot] -= min(max(stay.get(slot, 0), peak.get(slot, 0)), free[slot])
    for pod in pods:
        if pod.spec.gpu is not None and not pod.assignment:
            _guess(free, pod.spec.gpu.whole, _PERCENT * pod.spec.gpu.compute)
    return free


def _guess(free: list[int], whole: int, milli: int) -> None:
    for slot in [slot for slot, left in enumerate(free) if left == WHOLE][:whole]:
        free[slot] = 0
    room = [(left, slot) for slot, left in enumerate(free) if left >= milli]
    if milli and room:
        free[min(room)[1]] -= milli

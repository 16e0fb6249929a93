"""An agent's starts on a node with a kubelet on sockets and a vGPU server, without a cluster."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.informer import Change, ChangeKind
from alnair.model import names
from alnair.model.api_types import AssignedGpu, GpuAssignment
from alnair.node.kubelet.cdi import KIND, CdiSpecs, Edits, Mount
from alnair.node.kubelet.pod_resources import PodResources
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.node.vgpu.server import VgpuServer
from alnair.processes.agent.device_plugin.pods_on_node import PodsOnNode
from alnair.processes.agent.device_plugin.starts import Starts
from alnair.sharing.matching.node_state import NodeGpu, PodOnNode
from kit import kubelet_sockets
from kit.kubelet_sockets import Held, Kubelet, answer, slots
from kit.node_state import MEMORY

GPUS = [NodeGpu(f"GPU-00000000-0000-0000-0000-00000000000{i}", i, MEMORY) for i in range(2)]


def part(index: int, memory: int = 5_000, compute: int = 50) -> AssignedGpu:
    """A slice of one of `GPUS`."""
    return AssignedGpu(GPUS[index].uuid, index, memory, compute, whole=False)


def whole_part(index: int) -> AssignedGpu:
    """All of one of `GPUS`."""
    return AssignedGpu(GPUS[index].uuid, index, MEMORY, 100, whole=True)


class Node:
    """All that starts need, and what came of them.

    Attributes:
        refused: What was said of pods that may not start: name, sentence, whether to replace.
        written: Assignments that were chosen here.
        write_problem: Why none can be written.
        edits_error: Why it cannot be said what containers get.
        lacking: What the node lacks for pods.
    """

    def __init__(self, folder: Path, kubelet: Kubelet, server: VgpuServer) -> None:
        self.kubelet = kubelet
        self.server = server
        self.gpus = list(GPUS)
        self.refused: list[tuple[str, str, bool]] = []
        self.written: list[GpuAssignment] = []
        self.write_problem = ""
        self.edits_error = ""
        self.lacking = ""
        self.specs = CdiSpecs(folder / "cdi")
        self.resources = PodResources(kubelet.resources)
        self.pods = PodsOnNode(Client(Connection("http://127.0.0.1:1")), "node", lambda _: None)
        self.starts = self.agent()
        self.starts.take_over()

    def agent(self) -> Starts:
        """Begin anew, as an agent that is started."""
        found = Starts(
            self.server,
            self.specs,
            self,
            self.resources,
            self.kubelet.plugins,
            lambda: self.gpus,
            self,
            self._refuse,
        )
        found.pods = self.pods
        return found

    def add(self, *pods: PodOnNode) -> None:
        """Let the API server tell of pods, new ones or changed ones."""
        for pod in pods:
            old = self.pods.by_uid.get(pod.uid)
            kind = ChangeKind.ADDED if old is None else ChangeKind.MODIFIED
            self.pods._change(Change(kind, (pod.namespace, pod.name), old, pod))

    def remove(self, pod: PodOnNode) -> None:
        """Let the API server tell that a pod is gone."""
        self.pods._change(Change(ChangeKind.DELETED, (pod.namespace, pod.name), pod, None))

    def give(
        self, pod: PodOnNode, *ids: str, container: str = "main", resource: str = names.VGPU
    ) -> Held:
        """Let the kubelet allocate ids to a container."""
        device = answer(f"{KIND}={pod.name}-{container}")
        return self.kubelet.give(pod.uid, container, resource, slots(ids), device)

    async def start(self, held: Held) -> None:
        """Let the kubelet ask before a container starts."""
        await self.starts.start(held.resource, frozenset(held.ids))

    @property
    def files(self) -> dict[str, tuple[AssignedGpu, ...]]:
        """What containers were let start with, by the names of their CDI devices."""
        return {one.device: one.parts for one in self.specs.load()}

    def whole(self, uuids: Iterable[str]) -> Edits:
        return self._edits(*uuids)

    def sliced(self, pod: PodOnNode, given: AssignedGpu, slices_name: str) -> Edits:
        assert pod.demand is not None
        return self._edits(given.uuid, slices_name)

    def counted(self, uuids: Iterable[str], slices_name: str) -> Edits:
        return self._edits(*uuids, slices_name)

    def missing(self, pod: PodOnNode) -> str:
        return self.lacking if pod.demand else ""

    def _edits(self, *told: str) -> Edits:
        if self.edits_error:
            raise OSError(self.edits_error)
        return Edits(mounts=(Mount("/".join(told), "/to"),))

    async def write(self, pod: PodOnNode, assignment: GpuAssignment) -> str:
        if not self.write_problem:
            self.written.append(assignment)
        return self.write_problem

    def _refuse(self, pod: OwningPod, message: str, replace_it: bool) -> None:
        self.refused.append((pod.name, message, replace_it))


@asynccontextmanager
async def plugin_node() -> AsyncIterator[Node]:
    """A node whose kubelet and vGPU server run."""
    async with kubelet_sockets.kubelet() as kubelet:
        await kubelet.start()
        folder = kubelet.folder
        async with VgpuServer(folder / "vgpu") as server:
            found = Node(folder, kubelet, server)
            async with found.resources:
                yield found


def on_gpu(pod: PodOnNode, **given: list[AssignedGpu]) -> PodOnNode:
    """The pod with an assignment."""
    return replace(pod, assignment=GpuAssignment(1, "2026-01-31T12:00:00Z", given))

"""The pods of this node, kept true by a watch, as the matching of allocations reads them."""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from alnair.kube.client import Client
from alnair.kube.informer import Change, Informer
from alnair.kube.objects import wire
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.resources import PODS
from alnair.model import names
from alnair.model.api_types import AssignedGpu, GpuAssignment
from alnair.model.workload import Pod
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.sharing.matching.node_state import PodOnNode


class PodsOnNode:
    """Follows the pods that are bound to a node.

    Args:
        client: An open client.
        node: Name of the node.
        on_end: Called with the uid of a pod that has ended or is gone, once.
    """

    def __init__(self, client: Client, node: str, on_end: Callable[[str], None]) -> None:
        self._on_end = on_end
        self._project = PodProjector()
        self._by_uid: dict[str, PodOnNode] = {}
        #: Assignments that were written a moment ago and have not come back yet.
        self._written: dict[str, GpuAssignment] = {}
        self._changed = asyncio.Event()
        self._informer = Informer(
            client,
            PODS.typed(wire.PodWire),
            self._read,
            self._change,
            field_selector=f"spec.nodeName={node}",
            identity=lambda pod: pod.uid,
        )

    @property
    def by_uid(self) -> Mapping[str, PodOnNode]:
        """All pods by uid; those that ended too, while the API server has them."""
        return self._by_uid

    @property
    def synced(self) -> asyncio.Event:
        """Set once all that existed at the start is known."""
        return self._informer.synced

    async def run(self) -> None:
        """Follow, until cancelled."""
        await self._informer.run()

    async def changed(self, seconds: float) -> None:
        """Wait for any change, no longer than so."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    def owner(self, uid: str) -> OwningPod | None:
        """Whose pod it is; None: there is none on this node."""
        pod = self._by_uid.get(uid)
        return OwningPod(pod.namespace, pod.name, uid) if pod is not None else None

    def wrote(self, uid: str, assignment: GpuAssignment | None) -> None:
        """Take in an assignment before the API server tells of it; None takes it back.

        What the API server has told meanwhile stays: a request may act, and its answer be lost.
        """
        pod = self._by_uid.get(uid)
        if pod is None:
            return
        if assignment is not None:
            self._written[uid] = assignment
        elif self._written.pop(uid, None) is None:
            return
        self._by_uid[uid] = msgspec.structs.replace(pod, assignment=assignment)

    def _read(self, found: wire.PodWire) -> PodOnNode:
        annotations = found.metadata.annotations or {}
        pod = self._project(found)
        problem = ""
        if names.GPU_ASSIGNMENT in annotations and not pod.assignment:
            problem = pod.problem or f"annotation {names.GPU_ASSIGNMENT} names no container"
        return PodOnNode(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            created=pod.created,
            demand=pod.spec.gpu,
            assignment=_assignment(pod),
            assignment_problem=problem,
            is_ended=pod.finished,
            is_leaving=pod.deleting,
        )

    def _change(self, change: Change[PodOnNode]) -> None:
        old, new = change.old, change.new
        if old is not None and new is None:
            self._by_uid.pop(old.uid, None)
            self._written.pop(old.uid, None)
            if not old.is_ended:
                self._on_end(old.uid)
        if new is not None:
            if new.assignment is not None:
                self._written.pop(new.uid, None)
            elif new.uid in self._written:
                new = msgspec.structs.replace(new, assignment=self._written[new.uid])
            self._by_uid[new.uid] = new
            if new.is_ended and not (old is not None and old.is_ended):
                self._on_end(new.uid)
        self._changed.set()
        self._changed = asyncio.Event()


def _assignment(pod: Pod) -> GpuAssignment | None:
    if not pod.assignment:
        return None
    containers = {
        name: [AssignedGpu(p.uuid, p.index, p.memory_mib, p.compute, p.whole) for p in parts]
        for name, parts in pod.assignment
    }
    return GpuAssignment(1, "", containers)

"""The pods of this node, kept true by a watch: for the matching of allocations, and for names."""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec
from msgspec import field

from alnair.kube.client import Client
from alnair.kube.informer import Change, Informer
from alnair.kube.objects import wire
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.resources import PODS
from alnair.model import names
from alnair.model.api_types import AssignedGpu, GpuAssignment
from alnair.model.job_facts import Declared
from alnair.model.workload import Pod
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.device_plugin.pod_work import SpecWithWork, pod_work
from alnair.sharing.matching.node_state import PodOnNode

#: On the API server's copy of a pod from a file: the uid that the kubelet knows it by. It stands in
#: `config.mirror`, too, and has no dashes: so it is no other pod's uid, whoever wrote it.
_CONFIG_HASH: Final = "kubernetes.io/config.hash"
_CONFIG_MIRROR: Final = "kubernetes.io/config.mirror"
_HASH: Final = re.compile(r"[0-9a-f]{32}")


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    container_id: str = field(default="", name="containerID")


class _Status(wire.PodStatusWire, rename="camel"):
    container_statuses: list[_Container] | None = None
    init_container_statuses: list[_Container] | None = None
    ephemeral_container_statuses: list[_Container] | None = None


class PodWithContainers(wire.PodWire):
    """A pod with what the runtime calls its containers, and with what it works on."""

    spec: SpecWithWork
    status: _Status | None = None


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
        #: Uid of a pod from a file at the API server → what the kubelet calls it.
        self._from_files: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._informer = Informer(
            client,
            PODS.typed(PodWithContainers),
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
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    def by_group(self) -> Mapping[str, PodOnNode]:
        """All pods by the uids in their control groups: of pods from files, these are others."""
        if not self._from_files:
            return self._by_uid
        found: dict[str, PodOnNode] = {}
        for uid, pod in self._by_uid.items():
            group = self._from_files.get(uid, uid)
            # The kubelet removes a copy that it has not made; until then the older one counts.
            if group not in found or pod.created < found[group].created:
                found[group] = pod
        return found

    def owner(self, uid: str) -> OwningPod | None:
        """Whose pod it is; None: there is none on this node."""
        pod = self._by_uid.get(uid)
        return OwningPod(pod.namespace, pod.name, uid) if pod is not None else None

    def controller(self, uid: str) -> tuple[str, str]:
        """Kind and name of what controls a pod; empty if nothing does, or it is not known."""
        pod = self._by_uid.get(uid)
        return pod.owner if pod is not None else ("", "")

    def suspended(self) -> set[str] | None:
        """The uids of pods whose slices are to rest; None while the pods are not known."""
        if not self.synced.is_set():
            return None
        return {uid for uid, pod in self.by_uid.items() if pod.is_suspended}

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

    def _read(self, found: PodWithContainers) -> PodOnNode:
        annotations = found.metadata.annotations or {}
        pod = self._project(found)
        problem = ""
        if names.GPU_ASSIGNMENT in annotations and not pod.assignment:
            problem = pod.problem or f"annotation {names.GPU_ASSIGNMENT} names no container"
        hash_ = annotations.get(_CONFIG_HASH, "")
        if hash_ == annotations.get(_CONFIG_MIRROR) and _HASH.fullmatch(hash_):
            self._from_files[pod.uid] = hash_
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
            containers=_containers(found.status),
            owner=_owner(found.metadata.owner_references or ()),
            reads_log=annotations.get(names.READ_LOG) != "false",
            log_pattern=annotations.get(names.LOG_PATTERN, ""),
            counts_calls=annotations.get(names.COUNT_CALLS) == "true",
            is_suspended=annotations.get(names.VGPU_SUSPENDED) == "true",
            declared=pod_work(found.metadata, found.spec) if pod.spec.gpu else Declared(),
        )

    def _change(self, change: Change[PodOnNode]) -> None:
        old, new = change.old, change.new
        if old is not None and new is None:
            self._by_uid.pop(old.uid, None)
            self._written.pop(old.uid, None)
            self._from_files.pop(old.uid, None)
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


def _containers(status: _Status | None) -> dict[str, str]:
    """Return ids → names; an id comes as `containerd://ID`."""
    if status is None:
        return {}
    lists = (
        status.container_statuses,
        status.init_container_statuses,
        status.ephemeral_container_statuses,
    )
    return {
        one.container_id.rpartition("/")[2]: one.name
        for listed in lists
        for one in listed or ()
        if one.container_id
    }


def _owner(references: Iterable[wire.OwnerReference]) -> tuple[str, str]:
    return next(((one.kind, one.name) for one in references if one.controller), ("", ""))

"""What is noted of pods, nodes and PodGroups: all that their history needs, and no more.

Times are seconds since the epoch, 0 = not known.
"""

import math
import sys
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from alnair.history.history import End
from alnair.kube.objects import wire
from alnair.kube.objects.annotation_documents import UNREADABLE, check_version
from alnair.kube.objects.load_annotations import read_expected
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.timestamps import timestamp
from alnair.model import api_types, names
from alnair.model.nodes import Gpu
from alnair.model.workload import Pod, PodGpuAssignment

#: Why a pod is being disturbed (condition DisruptionTarget) → how its stay ends. Source:
#: kubernetes.io, "Disruptions", Pod disruption conditions; anything else counts as evicted.
_DISRUPTIONS: Final[dict[str, End]] = {
    "PreemptionByScheduler": "preempted",
    "DeletionByTaintManager": "lost",
    "DeletionByPodGC": "lost",
}
#: Reasons that a pod failed for (`status.reason`) which are not its own.
_NOT_ITS_OWN: Final[dict[str, End]] = {
    "Evicted": "evicted",
    "Preempting": "preempted",
    "NodeLost": "lost",
    "NodeShutdown": "lost",
    "Terminated": "lost",
    "Shutdown": "lost",
}
_PHASES: Final[dict[str, Literal["", "completed", "failed"]]] = {
    "Succeeded": "completed",
    "Failed": "failed",
}
#: Pods that are remembered while they go, at most.
_LEAVING: Final = 4096
_NAMES_MODEL: Final = (names.GPU_MODEL_LABEL, "In")
_utilization = msgspec.json.Decoder(api_types.PodUtilization)


class ConditionWire(Struct, rename="camel", gc=False):
    """A condition of a pod or node."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class TerminatedWire(Struct, rename="camel", gc=False):
    """How a container ended."""

    started_at: str | None = None
    finished_at: str | None = None


class RunningWire(Struct, rename="camel", gc=False):
    """Since when a container runs."""

    started_at: str | None = None


class StateWire(Struct, gc=False):
    """What a container does."""

    running: RunningWire | None = None
    terminated: TerminatedWire | None = None


class ContainerWire(Struct, gc=False):
    """Status of a container."""

    state: StateWire | None = None


class StatusWire(Struct, rename="camel"):
    """Status of a pod."""

    phase: str | None = None
    reason: str | None = None
    conditions: list[ConditionWire] | None = None
    container_statuses: list[ContainerWire] | None = None
    pod_ip: str | None = field(default=None, name="podIP")


class PodMetaWire(wire.ObjectMeta, rename="camel"):
    """Metadata of a pod: it was asked to go so many seconds before its deletion timestamp."""

    deletion_grace_period_seconds: int | None = None


class PodWire(Struct):
    """A pod."""

    metadata: PodMetaWire
    spec: wire.PodSpecWire
    status: StatusWire | None = None


class NodeStatusWire(Struct):
    """Status of a node."""

    allocatable: wire.Quantities | None = None
    conditions: list[ConditionWire] | None = None


class NodeWire(Struct):
    """A node."""

    metadata: wire.ObjectMeta
    status: NodeStatusWire | None = None


class Share(Struct, frozen=True, omit_defaults=True, gc=False):
    """A pod's part of a GPU: MiB and percent; `compute` 100 = the whole of it."""

    uuid: str
    memory_mib: int = 0
    compute: int = 0


class PodRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is noted of a pod; it changes when any of this does.

    Attributes:
        job: the PodGroup, controller or, without both, the pod itself; unique in its namespace.
        memory_mib: of the node; `slice_memory` is of a GPU.
        cut: how its stay ends if it goes now, as far as the pod says.
        phase: how it ended by itself.
        expected: seconds that it is expected to run.
        refused: why it has no node.
    """

    uid: str
    namespace: str
    name: str
    job: str
    group: str = ""
    created: float = 0.0
    priority: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0
    whole: int = 0
    slice_memory: int = 0
    slice_compute: int = 0
    models: tuple[str, ...] = ()
    node: str = ""
    bound: float = 0.0
    shares: tuple[Share, ...] = ()
    cut: End = ""
    phase: Literal["", "completed", "failed"] = ""
    ended: float = 0.0
    expected: float = 0.0
    refused: str = ""


class NodeRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is noted of a node; `since` is when it became ready, or ceased to be."""

    name: str
    created: float = 0.0
    cpu_milli: int = 0
    memory: int = 0
    gpu_count: int = 0
    model: str = ""
    gpus: tuple[Gpu, ...] = ()
    ready: bool = True
    since: float = 0.0


class GroupRecord(Struct, frozen=True, omit_defaults=True):
    """How many pods a PodGroup needs."""

    namespace: str
    name: str
    least: int = 1


def utilization(pod: PodWire) -> float | None:
    """Return the percent of its GPUs that the pod is measured to use, if it is."""
    text = (pod.metadata.annotations or {}).get(names.UTILIZATION)
    if not text:
        return None
    try:
        found = _utilization.decode(text)
        check_version(found.v)
    except UNREADABLE:
        return None  # what cannot be read is no measurement
    return min(max(found.gpu, 0.0), 100.0)


class PodReader:
    """Makes records of pods.

    When a pod was asked to go is remembered: the kubelet, who deletes it at last, has its deletion
    timestamp be the moment of that.
    """

    def __init__(self) -> None:
        self._project = PodProjector()
        self._asked: OrderedDict[str, float] = OrderedDict()

    def __call__(self, pod: PodWire) -> PodRecord:
        """Return the record."""
        status = pod.status or StatusWire()
        conditions = {c.type: c for c in status.conditions or ()}
        known = self._project(_plain(pod, status))
        meta = pod.metadata
        requests = dict(known.spec.requests)
        demand = known.spec.gpu
        return PodRecord(
            uid=meta.uid,
            namespace=known.namespace,
            name=meta.name,
            job=_job(known, meta.owner_references),
            group=known.group,
            created=known.created,
            priority=known.priority,
            cpu_milli=requests.get("cpu", 0),
            memory_mib=-(-requests.get("memory", 0) // (1 << 20)),
            whole=demand.whole if demand else 0,
            slice_memory=demand.memory_mib if demand else 0,
            slice_compute=demand.compute if demand else 0,
            models=_models(known) if demand else (),
            node=known.node,
            bound=known.bound_at,
            shares=_shares(known),
            cut=_cut(conditions.get("DisruptionTarget"), status, self._asked_to_go(meta)),
            phase=_PHASES.get(status.phase or "", ""),
            ended=_ended(status) if status.phase in _PHASES else 0.0,
            expected=read_expected(meta.annotations or {}).duration_s,
            refused="" if known.node else _message(conditions.get("PodScheduled")),
        )

    def _asked_to_go(self, meta: PodMetaWire) -> float:
        """Return when somebody asked for its deletion first, as far as that was seen."""
        if not meta.deletion_timestamp:
            return math.inf
        asked = timestamp(meta.deletion_timestamp) - (meta.deletion_grace_period_seconds or 0)
        asked = self._asked[meta.uid] = min(asked, self._asked.get(meta.uid, math.inf))
        if len(self._asked) > _LEAVING:
            self._asked.popitem(last=False)
        return asked


def _plain(pod: PodWire, status: StatusWire) -> wire.PodWire:
    conditions = [
        wire.PodCondition(c.type, c.status, c.reason, c.last_transition_time)
        for c in status.conditions or ()
    ]
    return wire.PodWire(
        pod.metadata, pod.spec, wire.PodStatusWire(phase=status.phase, conditions=conditions)
    )


def _job(pod: Pod, owners: Iterable[wire.OwnerReference] | None) -> str:
    if pod.group:
        return f"PodGroup/{pod.group}"
    for owner in owners or ():
        if owner.controller:
            return sys.intern(f"{owner.kind}/{owner.name}")
    return f"Pod/{pod.name}"


def _models(pod: Pod) -> tuple[str, ...]:
    """Return the GPU models that a pod names, by annotation or by the node label; empty = any."""
    spec = pod.spec
    if spec.gpu is not None and spec.gpu.models:
        return spec.gpu.models
    if model := dict(spec.node_selector).get(names.GPU_MODEL_LABEL):
        return (model,)
    terms = (spec.affinity.required if spec.affinity else None) or ()
    found: set[str] = set()
    for term in terms:
        named = [r.values for r in term.labels if (r.key, r.operator) == _NAMES_MODEL]
        if not named:
            return ()  # this term alone lets the pod go anywhere
        found.update(*named)
    return tuple(sorted(found))


def _shares(pod: Pod) -> tuple[Share, ...]:
    """Return the most that a pod has of each GPU at one moment."""
    init = pod.spec.gpu.init_containers() if pod.spec.gpu else frozenset()
    found: dict[str, tuple[int, int]] = {}
    for is_init in (False, True):  # an init container has ended when the others run
        for container, shares in _containers(pod.assignment, init, is_init=is_init):
            for share in shares:
                memory, compute = found.get(share.uuid, (0, 0))
                mine = (0, 100) if share.whole else (share.memory_mib, share.compute)
                found[share.uuid] = (
                    (max(memory, mine[0]), max(compute, mine[1]))
                    if container in init
                    else (memory + mine[0], compute + mine[1])
                )
    return tuple(Share(uuid, *amounts) for uuid, amounts in found.items())


def _containers(
    assignment: PodGpuAssignment, init: frozenset[str], *, is_init: bool
) -> PodGpuAssignment:
    return tuple(item for item in assignment if (item[0] in init) == is_init)


def _cut(target: ConditionWire | None, status: StatusWire, asked: float) -> End:
    if target is not None and target.status == "True":
        return _DISRUPTIONS.get(target.reason or "", "evicted")
    if how := _NOT_ITS_OWN.get(status.reason or "", ""):
        return how
    # Who is told to end ends by a signal, which Kubernetes calls a failure.
    return "deleted" if status.phase == "Failed" and _ended(status) >= asked else ""


def _ended(status: StatusWire) -> float:
    """Return when the last container ended."""
    times = [
        timestamp(c.state.terminated.finished_at or "")
        for c in status.container_statuses or ()
        if c.state is not None and c.state.terminated is not None
    ]
    return max(times, default=0.0)


def started(pod: PodWire) -> float:
    """Return when the first container started, as far as its status says; 0 = not known."""
    states = [c.state for c in (pod.status.container_statuses if pod.status else None) or ()]
    times = [
        timestamp(one.started_at or "")
        for state in states
        if state is not None and (one := state.running or state.terminated) is not None
    ]
    return min((time for time in times if time), default=0.0)


def _message(scheduled: ConditionWire | None) -> str:
    if scheduled is None or scheduled.status == "True":
        return ""
    return scheduled.message or scheduled.reason or ""


def node_record(node: NodeWire) -> NodeRecord:
    """Return the record of a node."""
    status = node.status or NodeStatusWire()
    known = project_node(
        wire.NodeWire(node.metadata, None, wire.NodeStatusWire(allocatable=status.allocatable))
    )
    ready = next((c for c in status.conditions or () if c.type == "Ready"), ConditionWire())
    return NodeRecord(
        name=known.name,
        created=timestamp(node.metadata.creation_timestamp),
        cpu_milli=known.allocatable.get("cpu", 0),
        memory=known.allocatable.get("memory", 0),
        gpu_count=known.gpu_count,
        model=known.labels.get(names.GPU_MODEL_LABEL, ""),
        gpus=tuple(Gpu(g.uuid, g.index, g.model, g.memory_mib) for g in known.gpus),
        ready=ready.status not in ("False", "Unknown"),
        since=timestamp(ready.last_transition_time or ""),
    )

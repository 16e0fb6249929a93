"""From API objects: pods.

A projector keeps equal parts once: the thousand pods of a job share one `PodSpec`, which is also
what makes them one class for the scheduler. A malformed part never raises; it becomes a `problem`
that names it, since one bad object must not stop the others.
"""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from alnair.kube.objects import wire
from alnair.kube.objects.annotation_documents import UNREADABLE, check_version
from alnair.kube.objects.device_claims import device_claims_problem
from alnair.kube.objects.disks import pod_volumes
from alnair.kube.objects.load_annotations import Expectation, read_expected
from alnair.kube.objects.pod_spec_projection import pod_spec
from alnair.kube.pod_groups.gang_labels import group_of, pod_topology, topology_problem
from alnair.kube.timestamps import timestamp
from alnair.model import api_types, names, quantity
from alnair.model.pair_rates import seen_kind
from alnair.model.workload import (
    Controller,
    GpuPart,
    Labels,
    Pod,
    PodGpuAssignment,
    PodSpec,
)

#: Kinds of owners whose pods belong to their node.
_DAEMONS: Final = ("DaemonSet", "Node")
#: Reason of the condition DisruptionTarget of pods that a scheduler preempts.
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"
_FINISHED: Final = ("Succeeded", "Failed")
#: Controllers whose selector says which pods are peers, by the API that they are of.
_CONTROLLERS: Final = {
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "StatefulSet": "apps/v1",
}
#: Distinct specs of a churning cluster must not pile up.
_SPECS_KEPT: Final = 20_000
_assignment_decoder = msgspec.json.Decoder(api_types.GpuAssignment)
_workload_decoder = msgspec.json.Decoder(api_types.Workload)
_utilization_decoder = msgspec.json.Decoder(api_types.PodUtilization)


class PodProjector:
    """Projects pods; equal specs come out as the same object."""

    def __init__(self) -> None:
        self._specs: dict[PodSpec, PodSpec] = {}
        # Decoding a spec is the dear part, and the pods of a controller differ in nothing that is
        # read here.
        self._by_wire: dict[bytes, tuple[PodSpec, str]] = {}
        self._labels: dict[Labels, Labels] = {}
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode

    def __call__(self, pod: wire.PodWire) -> Pod:
        """Return the pod as scheduling sees it."""
        meta, spec = pod.metadata, pod.spec
        annotations, labels = meta.annotations or {}, meta.labels or {}
        expected = read_expected(annotations)
        shared, problem = self._spec(pod, annotations, expected)
        problem = problem or device_claims_problem(spec)
        if held := pod_volumes(pod):
            shared = self._shared(msgspec.structs.replace(shared, volumes=held))
        saved_at, unread = _saved_at(annotations)
        assignment: PodGpuAssignment = ()
        if text := annotations.get(names.GPU_ASSIGNMENT):
            try:
                assignment = _assignment(text)
            except UNREADABLE as error:
                problem = f"annotation {names.GPU_ASSIGNMENT} cannot be read: {error}"
        return Pod(
            uid=meta.uid,
            namespace=sys.intern(meta.namespace),
            name=meta.name,
            spec=shared,
            scheduler=sys.intern(spec.scheduler_name or "default-scheduler"),
            created=timestamp(meta.creation_timestamp),
            priority=spec.priority or 0,
            time_limit=spec.active_deadline_seconds or round(expected.duration_s),
            node=sys.intern(spec.node_name) if spec.node_name else "",
            bound_at=_bound_at(pod.status) if spec.node_name else 0.0,
            finished=pod.status is not None and pod.status.phase in _FINISHED,
            deleting=meta.deletion_timestamp is not None,
            gated=bool(spec.scheduling_gates),
            group=group_of(labels, spec.scheduling_group),
            topology=pod_topology(annotations) if annotations else None,
            labels=self._sorted_labels(labels),
            controller=_controller(meta.owner_references),
            assignment=assignment,
            problem=problem or topology_problem(annotations, names.KUEUE_TOPOLOGY_REQUIRED),
            preempts=spec.preemption_policy != "Never",
            nominated=sys.intern((pod.status and pod.status.nominated_node_name) or ""),
            started=timestamp((pod.status and pod.status.start_time) or ""),
            preempted=meta.deletion_timestamp is not None and _preempted(pod.status),
            idle_since=_idle_since(annotations),
            reclaimable=sys.intern(annotations.get(names.RECLAIMABLE, "")),
            owned=any(o.controller and o.kind not in _DAEMONS for o in meta.owner_references or ()),
            daemon=any(o.controller and o.kind in _DAEMONS for o in meta.owner_references or ()),
            evictable=annotations.get(names.EVICTABLE) != "false",
            saved_at=saved_at,
            ignored="; ".join(filter(None, (expected.ignored, unread))),
        )

    def _sorted_labels(self, labels: Mapping[str, str]) -> Labels:
        if not labels:
            return ()
        ordered = tuple(sorted((sys.intern(k), sys.intern(v)) for k, v in labels.items()))
        if len(self._labels) >= _SPECS_KEPT:
            self._labels.clear()
        return self._labels.setdefault(ordered, ordered)

    def _spec(
        self, pod: wire.PodWire, annotations: Mapping[str, str], expected: Expectation
    ) -> tuple[PodSpec, str]:
        spec = pod.spec
        kind = _workload_kind(pod, annotations)
        read = (
            spec.containers,
            spec.init_containers,
            spec.resources,
            spec.overhead,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.host_network,
            spec.volumes,
            annotations.get(names.GPU_MODELS),
            annotations.get(names.GPU_MODELS_NOT),
            annotations.get(names.GPU_MODEL_WEIGHTS),
            annotations.get(names.VGPU_POLICY),
            annotations.get(names.VGPU_PRIORITY),
            annotations.get(names.VGPU_ISOLATION),
            annotations.get(names.VGPU_MEMORY_POLICY),
            annotations.get(names.VGPU_HOST_MEMORY),
            expected.util,
            expected.memory_mib,
            kind,
        )
        # The digest is what is kept: the text is several times as long, and there may be thousands.
        key = hashlib.blake2b(self._encode(read), digest_size=16).digest()
        known = self._by_wire.get(key)
        if known is None:
            try:
                projected, problem = pod_spec(spec, annotations), ""
            except (quantity.QuantityError, ValueError) as error:
                projected, problem = PodSpec(requests=(("pods", 1),)), str(error)
            if len(self._by_wire) >= _SPECS_KEPT:
                self._by_wire.clear()
                self._specs.clear()
            if expected.util or expected.memory_mib or kind:
                projected = msgspec.structs.replace(
                    projected,
                    expected_util=expected.util,
                    expected_memory_mib=expected.memory_mib,
                    workload=kind if projected.gpu else "",
                )
            known = (self._shared(projected), problem)
            self._by_wire[key] = known
        return known

    def _shared(self, spec: PodSpec) -> PodSpec:
        if len(self._specs) >= 2 * _SPECS_KEPT:
            self._specs.clear()
        return self._specs.setdefault(spec, spec)


def _workload_kind(pod: wire.PodWire, annotations: Mapping[str, str]) -> str:
    """Return what the pod computes: by its annotation, its label, or what its agent has seen.

    A label cannot have all letters; what was seen is but like a workload of the suite.
    """
    labels = pod.metadata.labels or {}
    said = annotations.get(names.WORKLOAD_KIND) or labels.get(names.WORKLOAD_KIND, "")
    seen = annotations.get(names.WORKLOAD)
    if said.strip() or not seen or not pod.spec.node_name:
        return said.strip()
    try:
        found = _workload_decoder.decode(seen)
        check_version(found.v)
    except UNREADABLE:
        return ""  # it is the agent's, and of no use to the pod itself
    return seen_kind(found.bottleneck, found.type)


def _controller(owners: Sequence[wire.OwnerReference] | None) -> Controller | None:
    for owner in owners or ():
        if owner.controller and _CONTROLLERS.get(owner.kind) == owner.api_version:
            return sys.intern(owner.kind), sys.intern(owner.name)
    return None


def _bound_at(status: wire.PodStatusWire | None) -> float:
    # The API server sets this condition in the same write as the node.
    for condition in (status.conditions if status else None) or ():
        if condition.type == "PodScheduled" and condition.status == "True":
            return timestamp(condition.last_transition_time or "")
    return 0.0


def _preempted(status: wire.PodStatusWire | None) -> bool:
    return any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == PREEMPTION_BY_SCHEDULER
        for c in (status.conditions if status else None) or ()
    )


def _idle_since(annotations: Mapping[str, str]) -> float:
    text = annotations.get(names.UTILIZATION)
    if not text:
        return 0.0
    try:
        document = _utilization_decoder.decode(text)
        check_version(document.v)
    except UNREADABLE:
        return 0.0  # what cannot be read is no proof of idleness
    return timestamp(document.idle_since or "")


def _saved_at(annotations: Mapping[str, str]) -> tuple[float, str]:
    """Return when the pod last saved its work, and why its word on that is ignored."""
    text = annotations.get(names.LAST_CHECKPOINT)
    if not text:
        return 0.0, ""
    when = timestamp(text)
    if when > 0:
        return when, ""
    return 0.0, f"annotation {names.LAST_CHECKPOINT} is ignored: {text[:40]!r} is no RFC 3339 time"


def _assignment(text: str) -> PodGpuAssignment:
    document = _assignment_decoder.decode(text)
    check_version(document.v)
    return tuple(
        (
            container,
            tuple(
                GpuPart(sys.intern(g.uuid), g.index, g.memory_mib, g.compute, g.whole)
                for g in parts
            ),
        )
        for container, parts in document.containers.items()
    )

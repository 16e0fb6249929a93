"""What controllers make of their objects: pods, how many, and for how long."""

import math
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from alnair.kube.objects import wire
from alnair.model import names

Amount = Annotated[int, Meta(ge=0)]
#: Classes that every cluster has.
SYSTEM_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


class PodSpec(wire.PodSpecWire, rename="camel"):
    """Specification of a pod as people write it: priorities have names."""

    priority_class_name: str | None = None


class PodManifest(Struct):
    """A pod."""

    metadata: wire.ObjectMeta
    spec: PodSpec
    status: wire.PodStatusWire | None = None


class Template(Struct):
    """The template of a controller's pods."""

    spec: PodSpec
    metadata: wire.ObjectMeta = msgspec.field(default_factory=wire.ObjectMeta)


class ReplicasSpec(Struct):
    """Specification of a Deployment and its like."""

    template: Template
    replicas: Amount | None = None


class JobSpec(Struct, rename="camel"):
    """Specification of a Job."""

    template: Template
    parallelism: Amount | None = None
    completions: Amount | None = None
    active_deadline_seconds: Amount | None = None
    suspend: bool | None = None


class Replicas(Struct):
    """A Deployment, ReplicaSet, ReplicationController, StatefulSet or DaemonSet."""

    metadata: wire.ObjectMeta
    spec: ReplicasSpec


class BatchJob(Struct):
    """A Job."""

    metadata: wire.ObjectMeta
    spec: JobSpec


class PriorityClass(Struct, rename="camel"):
    """A PriorityClass."""

    metadata: wire.ObjectMeta
    value: int
    global_default: bool = False
    preemption_policy: str | None = None


class Workload(Struct, frozen=True):
    """Pods that are alike.

    Attributes:
        kind: of the object.
        meta: of the object.
        template: of its pods.
        count: of its pods; -1 = one on each node.
        rounds: how often each pod's work is done, one after the other.
        deadline: seconds after which the object ends, 0 = none.
        owner: of the pods, None for lone ones.
    """

    kind: str
    meta: wire.ObjectMeta
    template: Template
    count: int = 1
    rounds: int = 1
    deadline: int = 0
    owner: wire.OwnerReference | None = None
    status: wire.PodStatusWire | None = None


#: API version and kind → the type of the object.
KINDS: Final[dict[tuple[str, str], Any]] = {
    ("v1", "Pod"): PodManifest,
    ("batch/v1", "Job"): BatchJob,
    ("apps/v1", "Deployment"): Replicas,
    ("apps/v1", "ReplicaSet"): Replicas,
    ("apps/v1", "StatefulSet"): Replicas,
    ("apps/v1", "DaemonSet"): Replicas,
    ("v1", "ReplicationController"): Replicas,
}
#: A Deployment's pods belong to a ReplicaSet with this after its name.
_HASH: Final = "-simulated"
EVERY_NODE: Final = -1


def workload(kind: str, made: PodManifest | BatchJob | Replicas) -> Workload:
    """Return what an object asks for."""
    if isinstance(made, PodManifest):
        template = Template(made.spec, made.metadata)
        return Workload(kind, made.metadata, template, status=made.status)
    meta = made.metadata
    if isinstance(made, BatchJob):
        return _batch(kind, made)
    name, of = meta.name, kind
    if kind == "Deployment":
        name, of = f"{meta.name}{_HASH}", "ReplicaSet"
    api = "v1" if kind == "ReplicationController" else "apps/v1"
    owner = wire.OwnerReference(api, of, name, "", controller=True)
    replicas = made.spec.replicas
    count = EVERY_NODE if kind == "DaemonSet" else 1 if replicas is None else replicas
    return Workload(kind, meta, made.spec.template, count, owner=owner)


def _batch(kind: str, made: BatchJob) -> Workload:
    """Return a Job's pods: as many as run at once, each with its part of the completions."""
    spec, meta = made.spec, made.metadata
    together = 1 if spec.parallelism is None else spec.parallelism
    rounds = 1
    if spec.completions is not None:
        together = min(together, spec.completions)
        rounds = math.ceil(spec.completions / together) if together else 1
    if spec.suspend:
        together = 0
    template = spec.template
    labels = {"job-name": meta.name, "batch.kubernetes.io/job-name": meta.name}
    labels |= template.metadata.labels or {}
    inner = msgspec.structs.replace(template.metadata, labels=labels)
    owner = wire.OwnerReference("batch/v1", kind, meta.name, "", controller=True)
    return Workload(
        kind,
        meta,
        Template(template.spec, inner),
        together,
        rounds,
        spec.active_deadline_seconds or 0,
        owner,
    )


def admitted(spec: PodSpec) -> PodSpec:
    """Return the pod as our admission policy leaves it: a part of a GPU takes a slot as well."""
    return msgspec.structs.replace(
        spec,
        containers=[_with_slot(c) for c in spec.containers or ()] or spec.containers,
        init_containers=[_with_slot(c) for c in spec.init_containers or ()] or spec.init_containers,
    )


def _with_slot(container: wire.Container) -> wire.Container:
    asked = container.resources
    limits = (asked and asked.limits) or {}
    sliced = any(name in limits for name in names.SLICE_RESOURCES)
    if asked is None or names.VGPU in limits or not sliced:
        return container
    requests = {**limits, **(asked.requests or {}), names.VGPU: "1"}
    resources = msgspec.structs.replace(asked, requests=requests)
    return msgspec.structs.replace(container, resources=resources)


def pod_name(work: Workload, index: int) -> str:
    """Return the name of a pod, as near to what the controller would choose as need be."""
    if work.owner is None:
        return work.meta.name
    return f"{work.owner.name}-{index}"


def submitted(work: Workload) -> tuple[float | None, str]:
    """Return when the pods come, None if the manifest does not say, and what is wrong with that."""
    for meta in (work.meta, work.template.metadata):
        text = (meta.annotations or {}).get(names.SUBMIT_AT)
        if text is None:
            continue
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds < math.inf:
            return None, (
                f"annotation {names.SUBMIT_AT} is {text!r}: write seconds from the begin on"
            )
        return seconds, ""
    return None, ""

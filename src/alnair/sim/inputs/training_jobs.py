"""Training jobs of our custom resources, read for their workers: how many, and what each asks for.

Only what placement depends on is read, so manifests of the original apply as well as later ones.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from alnair.kube.objects import wire
from alnair.kube.resources import PODGROUPS
from alnair.model import names
from alnair.model.workload import Gang
from alnair.sim.inputs.workloads import PodSpec, Template, Workload

API: Final = "ai.centauruscloud.io/v1alpha1"
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Slice(Struct):
    """A part of a GPU that a worker asks for."""

    memory_mib: Annotated[int, Meta(ge=64)] = msgspec.field(name="memoryMiB")
    compute_percent: Annotated[int, Meta(ge=1, le=100)] | None = msgspec.field(
        default=None, name="computePercent"
    )


class WorkersSpec(Struct, rename="camel"):
    """The workers of a job; one of fixed size has `replicas`."""

    image: str = ""
    replicas: Count | None = None
    min_replicas: Count = 1
    max_replicas: Count | None = None
    target_replicas: Count | None = None
    gpus_per_worker: Annotated[int, Meta(ge=0, le=64)] | None = None
    gpu_slice: Slice | None = None
    gpu_types: list[str] = []
    resources: dict[str, Any] | None = None
    tolerations: list[dict[str, Any]] | None = None
    node_selector: dict[str, str] | None = None
    affinity: dict[str, Any] | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class RunPolicy(Struct, rename="camel"):
    """How long a job may run, and whether it shall run now."""

    active_deadline_seconds: Count | None = None
    suspend: bool = False


class TrainingSpec(Struct, rename="camel"):
    """Specification of a training job."""

    workers_spec: WorkersSpec
    launcher_spec: dict[str, Any] | None = None
    priority_class_name: str | None = None
    scheduler_name: str = names.SCHEDULER
    run_policy: RunPolicy | None = None


class TrainingManifest(Struct):
    """An ElasticHorovodJob, a HorovodJob or an ElasticTorchJob."""

    metadata: wire.ObjectMeta
    spec: TrainingSpec


#: API version and kind → the type of the object.
KINDS: Final[dict[tuple[str, str], Any]] = {
    (API, kind): TrainingManifest for kind in ("ElasticHorovodJob", "HorovodJob", "ElasticTorchJob")
}


class Bounds(Struct, frozen=True):
    """A training job, and with how many workers it starts: from `least` to `most`."""

    job: str
    kind: str
    least: int
    most: int


def bounds(kind: str, made: TrainingManifest) -> Bounds:
    """Return with how many workers a job starts; a minimum of 0 counts as 1."""
    workers, meta = made.spec.workers_spec, made.metadata
    least = max(1, workers.min_replicas)
    most = max(least, workers.max_replicas or workers.target_replicas or 0)
    wish = most if workers.target_replicas is None else workers.target_replicas
    if workers.replicas is not None:
        least = wish = most = max(1, workers.replicas)
    return Bounds(f"{meta.namespace}/{meta.name}", kind, least, min(max(least, wish), most))


def group(made: TrainingManifest, limits: Bounds) -> Gang:
    """Return the PodGroup that the operator makes for a job."""
    meta = made.metadata
    is_elastic = made.spec.workers_spec.replicas is None
    return Gang(
        meta.namespace,
        meta.name,
        limits.most,
        0.0,
        api=PODGROUPS.api_version,
        elastic_min=limits.least if is_elastic else 0,
    )


def workers(kind: str, made: TrainingManifest, limits: Bounds) -> Workload:
    """Return a job's workers as its operator makes them; none while it is suspended."""
    spec, meta = made.spec, made.metadata
    one = spec.workers_spec
    run = spec.run_policy or RunPolicy()
    annotations = dict(one.annotations)
    if one.gpu_types:
        annotations[names.GPU_MODELS] = ",".join(one.gpu_types)
    pod = {
        "containers": [{"name": "worker", "image": one.image, "resources": _resources(one)}],
        "tolerations": one.tolerations,
        "nodeSelector": one.node_selector,
        "affinity": one.affinity,
        "schedulerName": spec.scheduler_name,
        "priorityClassName": spec.priority_class_name,
    }
    template = Template(
        msgspec.convert({k: v for k, v in pod.items() if v is not None}, PodSpec),
        wire.ObjectMeta(
            labels={**one.labels, names.POD_GROUP_LABEL: meta.name},
            annotations=annotations,
        ),
    )
    return Workload(
        kind,
        meta,
        template,
        0 if run.suspend else limits.most,
        deadline=run.active_deadline_seconds or 0,
        owner=wire.OwnerReference(
            "apps/v1", "StatefulSet", f"{meta.name}-workers", "", controller=True
        ),
    )


def _resources(one: WorkersSpec) -> dict[str, Any]:
    asked = dict(one.resources or {})
    limits = dict(asked.get("limits") or {})
    if one.gpu_slice is not None:
        limits[names.VGPU_MEMORY] = str(one.gpu_slice.memory_mib)
        if one.gpu_slice.compute_percent is not None:
            limits[names.VGPU_COMPUTE] = str(one.gpu_slice.compute_percent)
    elif gpus := 1 if one.gpus_per_worker is None else one.gpus_per_worker:
        limits.setdefault(names.GPU, str(gpus))
    return {**asked, "limits": limits}

"""Elastic training jobs as users write them, and as their status tells.

One Struct per part of the custom resources: schema, parser and documentation at once, as in
`alnair.model.api_types`. Names are those of the original Alnair where it has them; what it has not
is optional. The rules between fields are in `alnair.kube.crds.elastic_crds`.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from alnair.model import names
from alnair.model.api_types import Amount, Condition, Count, Timestamp

MOST_WORKERS: Final = 1024
#: Most variables, volumes and so on of a pod, and characters of what names them: the API server
#: takes no rules that go through what has no end.
_MOST: Final = 32
_AMOUNTS: Final = 16
_LONGEST_NAME: Final = 63
_LONGEST_PATH: Final = 255

Workers = Annotated[int, Meta(ge=0, le=MOST_WORKERS)]
#: Of something that takes a day at most.
Seconds = Annotated[int, Meta(ge=0, le=86400)]
Image = Annotated[str, Meta(min_length=1, max_length=512)]
Command = Annotated[
    list[Annotated[str, Meta(max_length=4096)]], Meta(min_length=1, max_length=8 * _MOST)
]
Amounts = Annotated[dict[str, Amount], Meta(max_length=_AMOUNTS)]


def _fields(**longest: int) -> dict[str, Any]:
    """Return the schema of objects that go into the pod as they are, but for these texts."""
    texts = {
        name: {"type": "string", "minLength": 1, "maxLength": most}
        for name, most in longest.items()
    }
    return {"properties": texts, "required": [*longest]}


def _each_by(key: str) -> dict[str, Any]:
    """Return the schema of lists no two of whose objects have the same of this."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


_Named = Annotated[dict[str, Any], Meta(extra_json_schema=_fields(name=_LONGEST_NAME))]
_Mount = Annotated[
    dict[str, Any],
    Meta(extra_json_schema=_fields(mountPath=_LONGEST_PATH, name=_LONGEST_NAME)),
]
NamedObjects = Annotated[list[_Named], Meta(max_length=_MOST, extra_json_schema=_each_by("name"))]
Mounts = Annotated[list[_Mount], Meta(max_length=_MOST, extra_json_schema=_each_by("mountPath"))]
AnyObjects = Annotated[list[dict[str, Any]], Meta(max_length=_MOST)]
AnyObject = dict[str, Any]


class TolerationSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A taint that the pods stand."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


class Resources(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a container asks for, besides GPUs."""

    limits: Amounts | None = None
    requests: Amounts | None = None


class PodOverlay(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pod of a job: its image, and what else goes into it."""

    image: Image
    """Container image."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    image_pull_secrets: NamedObjects | None = None
    """Secrets that registries ask for, each with its name."""
    resources: Resources | None = None
    """Processors, memory and the like; GPUs have fields of their own."""
    env: NamedObjects | None = None
    """Variables of the container, as in a pod."""
    env_from: AnyObjects | None = None
    """ConfigMaps and Secrets whose keys become variables, as in a pod."""
    volumes: NamedObjects | None = None
    """Volumes of the pod, as in a pod."""
    volume_mounts: Mounts | None = None
    """Where the container has them, as in a pod."""
    tolerations: Annotated[list[TolerationSpec], Meta(max_length=_MOST)] | None = None
    node_selector: Annotated[dict[str, str], Meta(max_length=_MOST)] | None = None
    affinity: AnyObject | None = None
    """As in a pod."""
    service_account_name: str | None = None
    security_context: AnyObject | None = None
    """Of the pod, as in a pod."""
    labels: Annotated[dict[str, str], Meta(max_length=_MOST)] | None = None
    """Further labels of the pods."""
    annotations: Annotated[dict[str, str], Meta(max_length=_MOST)] | None = None
    """Further annotations of the pods."""


class GpuSlice(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of one GPU for each worker."""

    memory_mib: Annotated[int, Meta(ge=64, le=2**31 - 1)] = msgspec.field(name="memoryMiB")
    """MiB of one GPU's memory."""
    compute_percent: Annotated[int, Meta(ge=1, le=100)] | None = None
    """Percent of its time; without it the worker takes what others leave."""


class LauncherSpec(PodOverlay, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The pod that starts the workers' processes."""

    python_command: Command
    """The training's command, a word each."""


class ElasticLauncherSpec(
    LauncherSpec, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """The pod that starts the workers' processes, and follows their number."""

    in_gang: bool = False
    """It is placed together with the workers, or not at all."""


class GpuWorkers(PodOverlay, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The pods that train."""

    gpus_per_worker: Annotated[int, Meta(ge=0, le=64)] | None = None
    """Whole GPUs of each worker; 1 without a slice."""
    gpu_slice: GpuSlice | None = None
    """Instead of whole GPUs."""
    gpu_types: (
        Annotated[
            list[Annotated[str, Meta(max_length=_LONGEST_NAME)]],
            Meta(min_length=1, max_length=_MOST),
        ]
        | None
    ) = None
    """GPU models that will do; any without it."""
    slots: Annotated[int, Meta(ge=1, le=256)] | None = None
    """Processes of each worker; as many as it has GPUs, 1 at least."""


class FixedWorkersSpec(GpuWorkers, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The pods that train, always as many."""

    replicas: Workers
    """Workers."""


class ElasticWorkersSpec(GpuWorkers, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The pods that train; their number may change while they do."""

    min_replicas: Workers = 1
    """Fewest workers with which the job runs."""
    max_replicas: Workers | None = None
    """Most workers that it is given."""
    target_replicas: Workers | None = None
    """Most workers that are wanted for now: `kubectl scale` and autoscalers write it. Without it,
    as many as the maximum."""


class TorchWorkersSpec(
    ElasticWorkersSpec, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """The pods that train; each runs torchrun."""

    python_command: Command
    """The training's command, a word each."""
    max_restarts: Annotated[int, Meta(ge=0, le=1000)] = 100
    """How often torchrun begins anew with other workers or after a failure."""


class RunPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How long, how often, and what is left."""

    backoff_limit: Annotated[int, Meta(ge=0, le=1000)] = 1
    """How often the training's pods are started again after they failed."""
    active_deadline_seconds: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    """Seconds from its start after which the job has failed."""
    ttl_seconds_after_finished: Count | None = None
    """Seconds after its end until the job is deleted; never without it."""
    clean_pod_policy: Literal["Running", "All", "None"] = "Running"
    """Which pods go when the job has ended: those that would run on and hold GPUs, all, or none."""
    suspend: bool = False
    """Give back all that the job holds, until this is false again."""


class ElasticPolicy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How the number of workers follows what the cluster has."""

    scale_down_grace_seconds: Annotated[int, Meta(ge=0, le=3600)] = 5
    """Seconds that workers stay after the training was told to do without them."""
    grow: bool = True
    """More workers than the job started with are given to it when GPUs are free."""


class NetworkSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Who may speak to the job's pods."""

    isolated: bool = False
    """Only the job's own pods may connect to its workers (a NetworkPolicy)."""


_Name = Annotated[str, Meta(max_length=253)]


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What all kinds of training jobs have."""

    priority_class_name: _Name | None = None
    """PriorityClass of all pods."""
    scheduler_name: Annotated[str, Meta(min_length=1, max_length=63)] = names.SCHEDULER
    """Profile of the scheduler, such as alnair-cost-saving."""
    run_policy: RunPolicy | None = None
    network: NetworkSpec | None = None


class ElasticHorovodJobSpec(JobSpec, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A Horovod training that grows and shrinks while it runs."""

    launcher_spec: ElasticLauncherSpec
    workers_spec: ElasticWorkersSpec
    elastic_policy: ElasticPolicy | None = None


class HorovodJobSpec(JobSpec, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A Horovod training of a fixed size."""

    launcher_spec: LauncherSpec
    workers_spec: FixedWorkersSpec


class ElasticTorchJobSpec(JobSpec, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A torchrun training that grows and shrinks, by its checkpoints."""

    workers_spec: TorchWorkersSpec
    elastic_policy: ElasticPolicy | None = None


class MigrationStatus(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """How far the workers have left the nodes that they were to leave."""

    request: str
    """The annotation ai.centaurus.io/leave-nodes that this is about."""
    done: bool = False
    """No worker is on these nodes any more."""
    message: str = ""
    """What is waited for."""


class JobStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What has become of a training job."""

    phase: str | None = None
    """Created, Scheduled, Running, Scaling, Suspended, Succeeded or Failed."""
    target_replicas: Count | None = None
    """Workers that the job shall have now."""
    replicas: Count | None = None
    """Workers that there are."""
    scheduled_replicas: Count | None = None
    """Workers that have a node."""
    available_replicas: Count | None = None
    """Workers that are ready."""
    launcher: str | None = None
    """The launcher, such as job.batch/NAME."""
    workers: str | None = None
    """What makes the workers, such as statefulset.apps/NAME."""
    selector: str | None = None
    """Labels of the workers, for autoscalers."""
    start_time: Timestamp | None = None
    """When the job first ran, or ran again after it was suspended."""
    completion_time: Timestamp | None = None
    """When it succeeded or failed."""
    resize_time: Timestamp | None = None
    """When it was last given another number of workers."""
    observed_generation: int | None = None
    """Which version of the spec this status is about."""
    migration: MigrationStatus | None = None
    """Of the last move of its workers off nodes."""
    conditions: (
        Annotated[
            list[Condition],
            Meta(
                extra_json_schema={
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                }
            ),
        ]
        | None
    ) = None
    """Created, Scheduled, Running, Scaling, Suspended, Succeeded and Failed."""

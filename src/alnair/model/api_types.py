"""Custom resources and annotation documents.

One Struct per kind: schema, parser and documentation at once. The CRD manifests are generated from
these types by `alnair.kube.crds.manifests`.
"""

from typing import Annotated

import msgspec

from alnair.model.job_facts import CudaCalls, InputFacts, ModelFacts

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
#: A Kubernetes quantity: a number, or a number with a suffix.
Quantity = str | int
#: One that rules are about: the API server takes none that go through what has no end.
Amount = Annotated[str, msgspec.Meta(max_length=32)] | int
#: Amounts by resource.
Bounds = Annotated[dict[str, Amount], msgspec.Meta(max_length=32)]


class PodGroupSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """What a gang needs to start."""

    min_member: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1
    """Pods that must be placed together; fewer are never placed."""
    min_resources: dict[str, Quantity] | None = None
    """Resources that the cluster must have free before the gang is tried."""
    schedule_timeout_seconds: Count | None = None
    """Seconds that a gang may stay partly bound, after a crash, before it is evicted."""


Timestamp = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """A condition of an object, as Kubernetes writes them."""

    type: str
    status: str
    """True, False or Unknown."""
    reason: str
    """One word in CamelCase, for programs."""
    message: str
    """A sentence, for people."""
    last_transition_time: Timestamp
    """When the status last changed, RFC 3339."""


class PodGroupStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What has become of a gang."""

    phase: str | None = None
    """Pending, PreScheduling, Scheduling, Scheduled, Running, Unknown, Finished or Failed."""
    occupied_by: str | None = None
    """Owners of the pods, as namespace/name, separated by commas."""
    scheduled: Count | None = None
    """Members that have a node or had one."""
    running: Count | None = None
    succeeded: Count | None = None
    failed: Count | None = None
    schedule_start_time: Timestamp | None = None
    """When there first were enough members to be tried, RFC 3339."""
    conditions: list[Condition] | None = None
    """Scheduled, Finished and Failed; InitiallyScheduled of an elastic group."""
    fits: Count | None = None
    """While Scheduled is False by Unschedulable: with so many members it could be placed now."""


class ElasticQuotaSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """A namespace's share of the cluster."""

    min: Bounds | None = None
    """Guaranteed to the namespace."""
    max: Bounds | None = None
    """Never exceeded, also when others leave their share idle."""


class ElasticQuotaStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    """What of a quota is in use."""

    used: dict[str, Quantity] | None = None


class NamedValue(msgspec.Struct, rename="camel"):
    """A named text value."""

    name: str
    value: str


class ZoneCost(msgspec.Struct, rename="camel"):
    """Distance to another zone."""

    name: str
    value: int


class ZoneResource(msgspec.Struct, rename="camel", omit_defaults=True):
    """A resource of one topology zone."""

    name: str
    capacity: Quantity
    allocatable: Quantity
    available: Quantity


class Zone(msgspec.Struct, rename="camel", omit_defaults=True):
    """A topology zone of a node, such as a NUMA node."""

    name: str
    type: str
    parent: str | None = None
    costs: list[ZoneCost] | None = None
    attributes: list[NamedValue] | None = None
    resources: list[ZoneResource] | None = None


class GpuStaticEntry(msgspec.Struct, frozen=True):
    """One GPU of a node, as its agent describes it."""

    uuid: Annotated[str, msgspec.Meta(min_length=1)]
    index: Count
    model: Annotated[str, msgspec.Meta(min_length=1)]
    memory_mib: Count
    numa: int | None = None
    #: Index of another GPU, as text → kind of link, such as `NV4` or `PIX`.
    links: dict[str, str] = {}
    #: Why nothing may start on it, for people; absent while it is healthy.
    problem: str | msgspec.UnsetType = msgspec.UNSET


class GpuStatic(msgspec.Struct, frozen=True):
    """The node annotation `gpu-static`; `t` is RFC 3339."""

    v: int
    t: str
    gpus: list[GpuStaticEntry]


class AssignedGpu(msgspec.Struct, frozen=True):
    """A container's part of one GPU."""

    uuid: str
    index: int
    memory_mib: int
    compute: int
    whole: bool


class GpuAssignment(msgspec.Struct, frozen=True):
    """The pod annotation `gpu-assignment`; `t` is RFC 3339, `containers` maps name → parts."""

    v: int
    t: str
    containers: dict[str, list[AssignedGpu]]


class PlannedPod(msgspec.Struct, frozen=True):
    """Where a gang's member goes: its node, and per container the indices of the GPUs."""

    node: str
    gpus: dict[str, list[int]] = {}


class GangPlan(msgspec.Struct, frozen=True):
    """The PodGroup annotation `gang-plan`, written before the first Binding; `t` is RFC 3339."""

    v: int
    t: str
    pods: dict[str, PlannedPod]


class HeldRoom(msgspec.Struct, frozen=True, omit_defaults=True):
    """Room on a node that the scheduler holds for a pod until others have left."""

    uid: str
    pod: str
    """As namespace/name."""
    node: str
    reclaimed: bool = False
    """It was taken back by quota: it is held against pods of any priority."""


class HeldNodes(msgspec.Struct, frozen=True, omit_defaults=True):
    """The backfill reservation: nodes that are kept for what has waited longest."""

    unit: str
    """The uid of a pod, or of a gang `gang:NAMESPACE/NAME`."""
    nodes: tuple[str, ...]
    until: int
    """When it fits there if pods end as their limits say; seconds since the epoch."""


class Holdings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The annotation `holdings` of the scheduler's Lease: what its holder keeps for others."""

    v: int
    t: str = ""
    """Since when it is so, RFC 3339."""
    room: tuple[HeldRoom, ...] = ()
    nodes: HeldNodes | None = None
    quota: dict[str, dict[str, int]] = {}
    """By namespace: what waiting pods within its quota's `min` will take back, in base units."""
    left_out: int = 0
    """Further pods that room is held for: status.nominatedNodeName of each says where."""


class PodUtilization(msgspec.Struct, frozen=True):
    """What scheduling reads of the pod annotation `utilization`; times are RFC 3339."""

    v: int
    t: str
    gpu: float = 0.0
    """Percent of its GPUs' compute that the pod uses."""
    idle_since: str | None = None
    """Since when its GPUs have been idle; absent while they are not."""
    current: dict[str, float] | None = None
    """What it uses now, by the metrics of `alnair.model.usage`; absent once its processes ended."""
    maximum: dict[str, float] | None = None
    """The most of each that it used in one second."""


Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]


class GpuLoadAnnotation(msgspec.Struct, frozen=True):
    """The node annotation `gpu-<index>`: what one GPU does, as the node's agent measured it."""

    v: int
    t: str
    """When these values were first true, RFC 3339; a steady GPU's are not written again."""
    uuid: Annotated[str, msgspec.Meta(min_length=1)]
    util: Percent
    """Percent of time in which kernels ran, mean over the window."""
    memory_used_mib: Count
    window_s: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    """Seconds over which `util` was measured."""
    architecture: str | msgspec.UnsetType = msgspec.UNSET
    """Such as `hopper`."""
    memory_mib: Count | msgspec.UnsetType = msgspec.UNSET
    """All memory that it has."""
    memory_copy_util: Percent | msgspec.UnsetType = msgspec.UNSET
    """Percent of time in which its memory was read or written."""
    pcie_mib_s: float | msgspec.UnsetType = msgspec.UNSET
    """What goes over PCIe, both ways."""
    nvlink_mib_s: float | msgspec.UnsetType = msgspec.UNSET
    """And over NVLink."""


class Expected(msgspec.Struct, frozen=True):
    """The pod annotation `expected`: what the pod will need, as far as anybody knows."""

    v: int
    t: str
    """When it was written, RFC 3339."""
    util: Percent | None = None
    """Percent of one GPU's time that it will use."""
    memory_mib: Count | None = None
    """MiB of GPU memory that it will use."""
    duration_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Seconds that it will run."""
    source: str = ""
    """Who says so: `trial`, `history` or `user`."""


class UtilizationAhead(msgspec.Struct, frozen=True):
    """What a pod will use of its GPUs, percent: the mean of the time to come, between bounds."""

    mean: Percent
    low: Percent
    high: Percent
    coverage: Annotated[float, msgspec.Meta(ge=0, le=1)]
    """In what part of such times the mean lies between them, at least."""
    horizon_s: float


class Workload(msgspec.Struct, frozen=True, omit_defaults=True):
    """The pod annotation `workload`: what a pod does, as far as is known; the rest is absent."""

    v: int
    t: str
    """When these findings were first true, RFC 3339."""
    type: str | None = None
    """`training`, `inference`, `batch` or `idle`."""
    framework: str | None = None
    """What its log is of: a name of `alnair.profiler.logs.reading.FRAMEWORKS`."""
    period_s: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """Seconds of one iteration."""
    phase: str | None = None
    """`start`, `data loading`, `training`, `evaluation`, `checkpoint`, `pause` or `idle`."""
    step: Count | None = None
    epoch: Annotated[float, msgspec.Meta(ge=0)] | None = None
    progress: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """Done of all."""
    eta_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Seconds until it is done, from `t` on."""
    eta_low_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    eta_high_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Between these two in about 80 of 100 cases."""
    bottleneck: str | None = None
    """`GPU-bound`, `memory-bound`, `input-bound`, `communication-bound` or `idle`."""
    type_source: str | None = None
    """What tells the type, where that is neither its use nor its log: `CUDA calls`."""
    model: ModelFacts | None = None
    """What is trained or served."""
    input: InputFacts | None = None
    """What it reads."""
    cuda: CudaCalls | None = None
    """Which calls of CUDA it makes."""
    period_from: str | None = None
    """What `period_s` was told from: `log`, or `gpu`, the driver's samples."""
    busy_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Seconds of an iteration in which it used its GPUs: what others wait for."""
    idle_since: str | None = None
    """RFC 3339; while it holds GPUs and has not used them for long."""
    memory_full_s: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Seconds from `t` on, after which its GPU memory will be full, if it goes on as it did."""
    memory_full_coverage: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """In what part of such times it has grown so much, at least."""
    gpu_util_ahead: UtilizationAhead | None = None
    neighbours: tuple[str, ...] | None = None
    """NAMESPACE/NAME of the pods that use the same GPUs."""
    slowdown: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """Its steps' time beside others over that alone."""
    slowdown_from: str | None = None
    """What that was told from: `log`."""


class SlowRank(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rank of a job that holds up the others."""

    pod: str
    slowdown: float
    """How many times as long its steps take as they should."""
    since: str
    """RFC 3339, when it was found."""
    rank: int | None = None


class JobWorkload(msgspec.Struct, frozen=True, omit_defaults=True):
    """The annotation `workload` of what owns pods: what all of them do; see `Workload`."""

    v: int
    t: str
    pods: Count = 0
    """Of how many pods it is known what they do."""
    type: str | None = None
    framework: str | None = None
    period_s: float | None = None
    """The slowest pod's."""
    phase: str | None = None
    step: Count | None = None
    """The last pod's; so are `epoch` and `progress`."""
    epoch: float | None = None
    progress: float | None = None
    eta_s: float | None = None
    """Until the last pod is done; from `t` on."""
    eta_low_s: float | None = None
    eta_high_s: float | None = None
    bottleneck: str | None = None
    idle: Count = 0
    """Pods that hold GPUs and do not use them."""
    stragglers: tuple[SlowRank, ...] = ()

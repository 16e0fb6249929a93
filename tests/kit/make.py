"""Builders of nouns for the tests: say what matters, the rest has harmless values."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from alnair.model import names
from alnair.model.disruption import DisruptionBudget
from alnair.model.gpu_demand import ContainerGpus, gpu_demand
from alnair.model.gpu_models import MODELS
from alnair.model.nodes import Gpu, Image, Node, Taint
from alnair.model.pod_requests import SCORED_CPU, SCORED_MEMORY
from alnair.model.volumes import CLAIM, PersistentVolume, PersistentVolumeClaim
from alnair.model.workload import (
    Gang,
    GangTopology,
    GpuPart,
    HostPort,
    LabelSelector,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodGpuAssignment,
    PodSpec,
    PodTerm,
    PodVolume,
    Requirement,
    SpreadConstraint,
    Term,
    Toleration,
)

MIB = 1024 * 1024
GIB = 1024 * MIB
API = "scheduling.x-k8s.io/v1alpha1"
#: JSON that parsers give up on, and short enough for an annotation.
#: MiB of a GPU unless told: of the smaller A100.
GPU_MEMORY = MODELS["A100-40GB"].memory_mib
NESTED = "[" * 20_000 + "]" * 20_000


def gpu(
    node_name: str,
    index: int,
    model: str = "A100",
    memory_mib: int = GPU_MEMORY,
    *,
    numa: int | None = None,
    links: Mapping[int, str] | None = None,
    problem: str = "",
) -> Gpu:
    """One GPU; its uuid names its node."""
    connected = tuple(sorted((links or {}).items()))
    return Gpu(f"GPU-{node_name}-{index}", index, model, memory_mib, numa, connected, problem)


def linked(
    node_name: str, count: int, group: int, *, model: str = "A100", memory_mib: int = GPU_MEMORY
) -> list[Gpu]:
    """GPUs with NVLinks in groups of so many; the first half on NUMA node 0, the rest on 1."""
    return [
        gpu(
            node_name,
            i,
            model,
            memory_mib,
            numa=int(i >= (count + 1) // 2),
            links={
                j: "NV12" if i // group == j // group else "SYS" for j in range(count) if j != i
            },
        )
        for i in range(count)
    ]


def node(
    name: str = "node",
    *,
    cpu: int = 8000,
    memory: int = 32 * GIB,
    pods: int = 110,
    gpus: int | Sequence[Gpu] = 0,
    model: str = "A100",
    gpu_memory: int = GPU_MEMORY,
    factor: float = 1.0,
    nameless_gpus: int = 0,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    unschedulable: bool = False,
    problem: str = "",
    extended: Mapping[str, int] | None = None,
    images: Iterable[Image] = (),
) -> Node:
    """A node as its agent publishes it; `factor` is that of soft compute."""
    if isinstance(gpus, int):
        gpus = [gpu(name, i, model, gpu_memory) for i in range(gpus)]
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **(extended or {})}
    if gpus:
        healthy = [g for g in gpus if not g.problem]
        allocatable[names.GPU] = len(healthy)
        allocatable[names.VGPU_MEMORY] = sum(g.memory_mib for g in healthy)
        allocatable[names.VGPU_COMPUTE] = round(100 * len(healthy) * factor)
        allocatable[names.VGPU] = names.VGPU_SLOTS * len(healthy)
    if nameless_gpus:
        allocatable[names.GPU] = nameless_gpus
    return Node(
        name=name,
        allocatable=allocatable,
        labels={"kubernetes.io/hostname": name, **(labels or {})},
        taints=tuple(taints),
        unschedulable=unschedulable,
        gpus=tuple(gpus),
        problem=problem,
        images=tuple(images),
    )


def unhealthy(before: Node, *indices: int) -> Node:
    """The node when these of its GPUs, and no others, take nothing new; as its agent tells it.

    Some were healthy before, by which the soft factor is known.
    """
    gpus = [
        msgspec.structs.replace(g, problem="it does not answer" if g.index in indices else "")
        for g in before.gpus
    ]
    healthy = sum(not g.problem for g in before.gpus)
    factor = before.allocatable[names.VGPU_COMPUTE] / (100 * healthy)
    offered = node(gpus=gpus, factor=factor).allocatable
    resources = (names.GPU, names.VGPU_MEMORY, names.VGPU_COMPUTE, names.VGPU)
    allocatable = before.allocatable | {name: offered[name] for name in resources}
    return msgspec.structs.replace(before, gpus=tuple(gpus), allocatable=allocatable)


def spec(
    *,
    cpu: int = 100,
    memory: int = 100 * MIB,
    whole: int = 0,
    slice_mib: int = 0,
    compute: int = 0,
    soft: bool = False,
    models: str = "",
    models_not: str = "",
    weights: str = "",
    containers: Sequence[ContainerGpus] | None = None,
    extended: Mapping[str, int] | None = None,
    selector: Mapping[str, str] | None = None,
    affinity: NodeAffinity | None = None,
    tolerations: Iterable[Toleration] = (),
    node_name: str = "",
    spread: Iterable[SpreadConstraint] = (),
    pod_affinity: PodAffinity | None = None,
    claims: Iterable[str] = (),
    volumes: Iterable[PodVolume] = (),
    ports: Iterable[HostPort] = (),
    images: Iterable[str] = (),
) -> PodSpec:
    """What a pod asks for; its GPUs by container, or `whole` ones or a slice in one container."""
    if containers is None:
        asked = {names.GPU: whole, names.VGPU_MEMORY: slice_mib, names.VGPU_COMPUTE: compute}
        containers = [ContainerGpus("main", {k: v for k, v in asked.items() if v})]
    annotations = {names.VGPU_POLICY: "soft"} if soft else {}
    if models:
        annotations[names.GPU_MODELS] = models
    if models_not:
        annotations[names.GPU_MODELS_NOT] = models_not
    if weights:
        annotations[names.GPU_MODEL_WEIGHTS] = weights
    demand = gpu_demand(containers, annotations)
    requests = {"cpu": cpu, "memory": memory, "pods": 1, **(extended or {})}
    if demand:
        slices = sum(1 for r in demand.requests if r.memory_mib)
        requests[names.GPU] = demand.whole
        requests[names.VGPU_MEMORY] = demand.memory_mib
        requests[names.VGPU_COMPUTE] = demand.compute
        requests[names.VGPU] = slices
    return PodSpec(
        requests=tuple(sorted((name, n) for name, n in requests.items() if n)),
        scored_cpu=cpu or SCORED_CPU,
        scored_memory=memory or SCORED_MEMORY,
        node_name=node_name,
        node_selector=tuple(sorted((selector or {}).items())),
        affinity=affinity,
        tolerations=tuple(tolerations),
        gpu=demand,
        spread=tuple(spread),
        pod_affinity=pod_affinity,
        volumes=(*(PodVolume(CLAIM, name) for name in claims), *volumes),
        ports=tuple(ports),
        images=tuple(images),
        image_containers=len(tuple(images)),
    )


def selecting(**labels: str) -> LabelSelector:
    """A selector of pods with these labels."""
    return LabelSelector(tuple(Requirement(k, "In", (v,)) for k, v in sorted(labels.items())))


def spread_over(
    key: str, selector: LabelSelector | None, max_skew: int = 1, *, hard: bool = True, **rest: Any
) -> SpreadConstraint:
    """A topology spread constraint over the values of a node label."""
    return SpreadConstraint(max_skew, key, hard, selector, **rest)


def term(key: str = "zone", weight: int = 0, **labels: str) -> PodTerm:
    """A term of inter-pod affinity: pods with these labels in the domain of a node label."""
    return PodTerm(key, selecting(**labels), weight=weight)


def pod(
    name: str = "pod",
    asked: PodSpec | None = None,
    *,
    uid: str = "",
    namespace: str = "default",
    scheduler: str = names.SCHEDULER,
    created: float = 0.0,
    priority: int = 0,
    node: str = "",
    bound_at: float = 0.0,
    finished: bool = False,
    deleting: bool = False,
    gated: bool = False,
    group: str = "",
    labels: Mapping[str, str] | None = None,
    assignment: PodGpuAssignment = (),
    problem: str = "",
    time_limit: int = 0,
    preempts: bool = True,
    nominated: str = "",
    started: float = 0.0,
    preempted: bool = False,
    idle_since: float = 0.0,
    reclaimable: str = "",
    owned: bool = False,
    daemon: bool = False,
    evictable: bool = True,
    saved_at: float = 0.0,
) -> Pod:
    """A pod of ours that asks for little, unless said otherwise."""
    return Pod(
        uid=uid or f"uid-{namespace}-{name}",
        namespace=namespace,
        name=name,
        spec=asked if asked is not None else spec(),
        scheduler=scheduler,
        created=created,
        priority=priority,
        node=node,
        bound_at=bound_at,
        finished=finished,
        deleting=deleting,
        gated=gated,
        group=group,
        labels=tuple(sorted((labels or {}).items())),
        assignment=assignment,
        problem=problem,
        time_limit=time_limit,
        preempts=preempts,
        nominated=nominated,
        started=started,
        preempted=preempted,
        idle_since=idle_since,
        reclaimable=reclaimable,
        owned=owned,
        daemon=daemon,
        evictable=evictable,
        saved_at=saved_at,
    )


def budget(name: str = "budget", allowed: int = 0, **labels: str) -> DisruptionBudget:
    """A disruption budget over pods with these labels."""
    needs = tuple(Requirement(key, "In", (value,)) for key, value in sorted(labels.items()))
    return DisruptionBudget("default", name, LabelSelector(needs), allowed)


def gang(
    name: str = "gang",
    min_member: int = 2,
    *,
    namespace: str = "default",
    timeout: int = 60,
    created: float = 0.0,
    required: str = "",
    preferred: Sequence[str] = (),
    min_resources: Mapping[str, int] | None = None,
) -> Gang:
    """A PodGroup; levels of its topology are node labels."""
    return Gang(
        namespace,
        name,
        min_member,
        created,
        timeout,
        API,
        tuple(sorted((min_resources or {}).items())),
        GangTopology(required, tuple(preferred)) if required or preferred else None,
    )


def members(
    group: str,
    count: int,
    asked: PodSpec | None = None,
    *,
    created: float = 0.0,
    labels: Mapping[str, str] | None = None,
    priority: int = 0,
) -> list[Pod]:
    """Pods `GROUP-0`, `GROUP-1`, … of a gang."""
    return [
        pod(
            f"{group}-{i}",
            asked,
            group=group,
            created=created,
            labels=labels,
            priority=priority,
        )
        for i in range(count)
    ]


def share(gpu: Gpu, memory_mib: int = 0, compute: int = 0) -> GpuPart:
    """A container's part of a GPU: a slice, or all of it if no memory is given."""
    if memory_mib:
        return GpuPart(gpu.uuid, gpu.index, memory_mib, compute, whole=False)
    return GpuPart(gpu.uuid, gpu.index, gpu.memory_mib, 100, whole=True)


def claim(
    name: str = "claim",
    size: int = GIB,
    *,
    storage_class: str = "local",
    modes: Iterable[str] = ("ReadWriteOnce",),
    volume: str = "",
    bound: bool | None = None,
    selected_node: str = "",
    owner: str = "",
) -> PersistentVolumeClaim:
    """A claim in the default namespace; one that names its volume is bound to it."""
    return PersistentVolumeClaim(
        namespace="default",
        name=name,
        uid=f"uid-{name}",
        storage_class=storage_class,
        size=size,
        modes=tuple(modes),
        volume=volume,
        bound=bool(volume) if bound is None else bound,
        selected_node=selected_node,
        owner=owner,
    )


def local_volume(
    name: str, node_name: str | None = None, size: int = GIB, *, storage_class: str = "local"
) -> PersistentVolume:
    """A persistent volume that one node can reach, or all."""
    term = Term((Requirement("kubernetes.io/hostname", "In", (node_name or "",)),))
    return PersistentVolume(
        name=name,
        storage_class=storage_class,
        size=size,
        modes=("ReadWriteOnce", "ReadWriteOncePod"),
        nodes=(term,) if node_name else None,
        available=True,
    )

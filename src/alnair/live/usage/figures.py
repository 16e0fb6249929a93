"""From objects and agents' answers to the figures of nodes, GPUs, pods and owners. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from alnair.elastic.pod_templates import KINDS
from alnair.kube.objects.load_annotations import agent_lease
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.wire import NodeWire
from alnair.kube.timestamps import timestamp
from alnair.live.usage.objects import Objects, SeenPod
from alnair.live.usage.use import ClusterUse, GpuUse, NodeUse, OwnerUse, PodUse
from alnair.model import api_types, names, usage
from alnair.model.nodes import Node

#: Seconds after which an agent that did not renew its lease counts as silent.
_SILENT: Final = 40.0
#: What is shown of a pod that holds GPUs and has not used them for long.
UNUSED: Final = "GPU unused"
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)

_assignment = msgspec.json.Decoder(api_types.GpuAssignment)
_workload_decoder = msgspec.json.Decoder(api_types.Workload)
_utilization = msgspec.json.Decoder(api_types.PodUtilization)


def cluster_use(
    seen: Objects,
    live: Mapping[str, usage.PodUsage],
    now: float,
    namespace: str | None = None,
    notes: Iterable[str] = (),
) -> ClusterUse:
    """Return the figures.

    Args:
        seen: Of the API server.
        live: Pod's uid → what its agent says of it just now.
        now: Seconds since the epoch.
        namespace: Only its pods and owners are told; GPUs and nodes are told whole.
        notes: What could not be asked.
    """
    nodes = {one.metadata.name: one for one in seen.nodes}
    known = {name: project_node(one) for name, one in nodes.items()}
    assigned = {pod.metadata.uid: _assigned(pod) for pod in seen.pods}
    holders = _holders(seen.pods, assigned)
    silences = {name: _silence(node, seen.renewed, now) for name, node in nodes.items()}
    gpus = [
        _gpu(node, row, silences[node.name], holders)
        for node in known.values()
        for row in range(len(node.gpus))
    ]
    gpus.sort(key=lambda gpu: (gpu.node, gpu.index))
    sizes = {gpu.uuid: gpu.memory_mib for gpu in gpus}
    pods = [
        _pod(pod, parts, sizes, live.get(pod.metadata.uid), silences.get(pod.spec.node_name), now)
        for pod in seen.pods
        for parts in [assigned[pod.metadata.uid]]
        if parts or pod.whole_gpus
    ]
    pods.sort(key=lambda pod: (pod.namespace, pod.pod))
    told = [pod for pod in pods if namespace in (None, pod.namespace)]
    return ClusterUse(
        1,
        tuple(_nodes(gpus, pods, known)),
        tuple(gpus),
        tuple(told),
        tuple(_owners(told)),
        tuple(notes),
    )


def _assigned(pod: SeenPod) -> list[api_types.AssignedGpu]:
    text = (pod.metadata.annotations or {}).get(names.GPU_ASSIGNMENT)
    if not text:
        return []
    try:
        return [part for parts in _assignment.decode(text).containers.values() for part in parts]
    except _UNREADABLE:
        return []  # `alnair check` says what is wrong with it


def _holders(
    pods: Iterable[SeenPod], assigned: Mapping[str, list[api_types.AssignedGpu]]
) -> dict[tuple[str, str], list[str]]:
    """(node, GPU) → the pods that hold it."""
    found: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        title = f"{pod.metadata.namespace}/{pod.metadata.name}"
        for uuid in {part.uuid for part in assigned[pod.metadata.uid]}:
            found.setdefault((pod.spec.node_name, uuid), []).append(title)
    return found


def _silence(node: NodeWire, renewed: Mapping[str, str] | None, now: float) -> str:
    """Why the node's figures are not to be believed; "" if they are."""
    if renewed is None:
        return ""  # leases may not be read: shown as they are
    lease = agent_lease(node.metadata.annotations or {}, node.metadata.name)
    then = timestamp(renewed.get(lease, ""))
    if not then:
        return "no agent"
    return f"agent silent for {now - then:.0f} s" if now - then > _SILENT else ""


def _gpu(
    node: Node, row: int, silence: str, holders: Mapping[tuple[str, str], list[str]]
) -> GpuUse:
    gpu = node.gpus[row]
    load = next((one for one in node.loads if one.uuid == gpu.uuid), None)
    if silence:
        load = None
    return GpuUse(
        node=node.name,
        index=gpu.index,
        uuid=gpu.uuid,
        model=gpu.model,
        memory_mib=gpu.memory_mib,
        util=None if load is None else load.util,
        memory_used_mib=None if load is None else load.memory_used_mib,
        pods=tuple(sorted(holders.get((node.name, gpu.uuid), ()))),
        problem=gpu.problem or silence,
    )


def _pod(
    pod: SeenPod,
    parts: list[api_types.AssignedGpu],
    sizes: Mapping[str, int],
    live: usage.PodUsage | None,
    silence: str | None,
    now: float,
) -> PodUse:
    meta = pod.metadata
    held = sum(_part(part, sizes) for part in parts) if parts else float(pod.whole_gpus)
    made = PodUse(
        namespace=meta.namespace,
        pod=meta.name,
        node=pod.spec.node_name,
        owner=_owner(pod),
        gpus=round(held, 2),
    )
    if live is not None:
        made = _with_workload(_with_live(made, live), live.workload, now)
    elif not silence:  # else its annotations are of a time that has passed
        made = _with_workload(_with_annotation(made, pod, now), _workload(pod), now)
    if made.util is None:
        return made
    count = len({part.uuid for part in parts}) or pod.whole_gpus
    return msgspec.structs.replace(made, used_gpus=round(count * made.util / 100, 2))


def _with_annotation(made: PodUse, pod: SeenPod, now: float) -> PodUse:
    text = (pod.metadata.annotations or {}).get(names.UTILIZATION)
    try:
        written = _utilization.decode(text) if text else None
    except _UNREADABLE:
        written = None
    if written is None:
        return made
    idle = timestamp(written.idle_since or "")
    return msgspec.structs.replace(
        made, util=written.gpu, idle_s=max(0.0, now - idle) if idle else None
    )


def _workload(pod: SeenPod) -> api_types.Workload | None:
    text = (pod.metadata.annotations or {}).get(names.WORKLOAD)
    try:
        return _workload_decoder.decode(text) if text else None
    except _UNREADABLE:
        return None


def _with_workload(made: PodUse, found: api_types.Workload | None, now: float) -> PodUse:
    if found is None:
        return made
    age = max(0.0, now - timestamp(found.t))
    idle = timestamp(found.idle_since or "")
    return msgspec.structs.replace(
        made,
        phase=UNUSED if idle else found.phase or found.type,
        idle_s=max(0.0, now - idle) if idle and made.idle_s is None else made.idle_s,
        progress=found.progress,
        type=found.type,
        model=found.model,
        input=found.input,
        cuda=found.cuda,
        eta_s=None if found.eta_s is None else max(0.0, found.eta_s - age),
    )


def _with_live(made: PodUse, live: usage.PodUsage) -> PodUse:
    def last(metric: str) -> float | None:
        digest = live.metrics.get(metric)
        return None if digest is None else digest.last

    return msgspec.structs.replace(
        made,
        util=last(usage.GPU_UTIL),
        memory_mib=last(usage.GPU_MEMORY_MIB),
        cpu_cores=last(usage.CPU_CORES),
        ram_mib=last(usage.MEMORY_MIB),
        is_live=True,
    )


def _part(part: api_types.AssignedGpu, sizes: Mapping[str, int]) -> float:
    if part.whole:
        return 1.0
    if part.compute:
        return part.compute / 100
    size = sizes.get(part.uuid, 0)
    return part.memory_mib / size if size else 0.0


def _owner(pod: SeenPod) -> str:
    labels = pod.metadata.labels or {}
    for one in pod.metadata.owner_references or ():
        if one.controller:
            # Of a training job it is a StatefulSet or Job between, which nobody has heard of.
            of = ((kind, labels[kind]) for kind in KINDS if kind in labels)
            return "/".join(next(of, (one.kind, one.name)))
    return f"Pod/{pod.metadata.name}"


def _nodes(
    gpus: Iterable[GpuUse], pods: Iterable[PodUse], known: Mapping[str, Node]
) -> Iterable[NodeUse]:
    by_node: dict[str, list[GpuUse]] = {}
    for gpu in gpus:
        by_node.setdefault(gpu.node, []).append(gpu)
    unplaced: dict[str, int] = {}  # whole GPUs of pods that do not say which
    titles = {title for gpu in gpus for title in gpu.pods}
    count: dict[str, int] = {}
    for pod in pods:
        count[pod.node] = count.get(pod.node, 0) + 1
        if f"{pod.namespace}/{pod.pod}" not in titles:
            unplaced[pod.node] = unplaced.get(pod.node, 0) + int(pod.gpus)
    for name, held in sorted(by_node.items()):
        idle = sum(1 for gpu in held if not gpu.pods)
        utils = [gpu.util for gpu in held if gpu.util is not None]
        used = [gpu.memory_used_mib for gpu in held if gpu.memory_used_mib is not None]
        cordoned = "cordoned" if known[name].unschedulable else ""
        reasons = sorted({gpu.problem for gpu in held})
        yield NodeUse(
            node=name,
            gpus=len(held),
            free=max(0, idle - unplaced.get(name, 0)),
            util=round(sum(utils) / len(utils), 1) if utils else None,
            memory_used_mib=sum(used) if used else None,
            memory_mib=sum(gpu.memory_mib for gpu in held),
            pods=count.get(name, 0),
            problem="; ".join(filter(None, (cordoned, known[name].problem, *reasons))),
        )


def _owners(pods: Iterable[PodUse]) -> Iterable[OwnerUse]:
    by_owner: dict[tuple[str, str], list[PodUse]] = {}
    for pod in pods:
        by_owner.setdefault((pod.namespace, pod.owner), []).append(pod)
    for (namespace, owner), held in sorted(by_owner.items()):
        known = [pod for pod in held if pod.used_gpus is not None]
        used = sum(pod.used_gpus or 0.0 for pod in known)
        # A soft slice may use more than it holds: that is no gain for another's waste.
        wasted = sum(max(0.0, pod.gpus - (pod.used_gpus or 0.0)) for pod in known)
        yield OwnerUse(
            namespace=namespace,
            owner=owner,
            pods=len(held),
            gpus=round(sum(pod.gpus for pod in held), 2),
            used_gpus=round(used, 2) if known else None,
            wasted_gpus=round(wasted, 2) if known else None,
        )

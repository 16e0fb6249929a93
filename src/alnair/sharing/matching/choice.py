"""Which GPUs a pod gets that nobody gave any, as where another scheduler than ours bound it."""

from collections.abc import Iterable, Mapping, Sequence

from alnair.model import names
from alnair.model.api_types import AssignedGpu
from alnair.model.plurals import counted
from alnair.model.workload import GpuDemand
from alnair.sharing.matching.node_state import NodeGpu, PodOnNode, Started, stays
from alnair.sharing.matching.outcomes import AGAIN, Refuse, Wait
from alnair.sharing.matching.room import Held, PodHolds, holds, room_problem

#: Container → its parts, as in the annotation `gpu-assignment`.
Chosen = dict[str, list[AssignedGpu]]


def choose(
    pod: PodOnNode,
    gpus: Sequence[NodeGpu],
    pods: Iterable[PodOnNode],
    started: Started,
    allocated: Mapping[str, frozenset[str]] | None = None,
) -> Chosen | Refuse | Wait:
    """Choose GPUs for a pod: slices where the least is left over, whole ones that nobody has.

    What is chosen must be known as the pod's assignment before the next pod is asked about.
    Whoever bound the pod here may have counted on pods that are leaving; those are waited for.

    Args:
        pod: Has no assignment.
        gpus: Of this node.
        pods: Bound to this node. Those with an assignment count, whether they have started or not.
        started: Containers whose start was allowed before; those of this pod keep their GPUs.
        allocated: Container → ids of whole GPUs that the kubelet allocated to it: they are taken
            if they are free, as the cores and the memory of the container are near them.
    """
    demand = pod.demand
    if demand is None or demand.problem:
        why = demand.problem if demand else "it asks for no GPU"
        return Refuse(f"{pod.title} cannot be given GPUs: {why}", is_final=True)
    own = started.get(pod.uid, {})
    known = {p.uid: p for p in pods}
    others = _held_by_others(pod, known, started)
    staying = [held for uid, held in others.items() if stays(known.get(uid))]
    usable = [gpu for gpu in gpus if not gpu.problem and _accepted(demand, gpu)]
    wanted = {
        **(allocated or {}),
        **{name: frozenset(part.uuid for part in parts) for name, parts in own.items()},
    }
    if chosen := _beside(demand, usable, [*others.values()], own, wanted):
        return chosen
    if _beside(demand, usable, staying, own, wanted):
        return Wait(f"{pod.title} has no room yet: pods that hold it are leaving: {AGAIN}")
    return Refuse(f"{pod.title} has no assignment, and {_nothing_fits(demand)}", is_final=False)


def _held_by_others(
    pod: PodOnNode, pods: Mapping[str, PodOnNode], started: Started
) -> dict[str, PodHolds]:
    """Return, by uid, what pods hold that have started, or will with what they were assigned."""
    waiting = {uid for uid, p in pods.items() if p.assignment and not p.is_ended}
    uids = (waiting | started.keys()) - {pod.uid}
    return {uid: holds(pods.get(uid), started.get(uid, {})) for uid in uids}


def _beside(
    demand: GpuDemand,
    usable: Sequence[NodeGpu],
    others: Sequence[PodHolds],
    own: Mapping[str, Sequence[AssignedGpu]],
    wanted: Mapping[str, frozenset[str]],
) -> Chosen | None:
    """Choose what these others leave; None if that is too little."""
    liked = {uuid for uuids in wanted.values() for uuid in uuids}
    for shared in _for_slices(demand, usable, others, own):
        free = [g for g in usable if g is not shared and not any(g.uuid in o for o in others)]
        if len(free) >= demand.whole:
            whole = sorted(free, key=lambda g: (g.uuid not in liked, g.index))[: demand.whole]
            return _parts(demand, whole, shared, wanted)
    return None


def _accepted(demand: GpuDemand, gpu: NodeGpu) -> bool:
    return not gpu.model or demand.accepts(gpu.model)


def _for_slices(
    demand: GpuDemand,
    usable: Sequence[NodeGpu],
    others: Sequence[PodHolds],
    own: Mapping[str, Sequence[AssignedGpu]],
) -> list[NodeGpu | None]:
    """Return the GPUs that the pod's slices fit on, the best fit first; [None] without slices."""
    if not demand.memory_mib:
        return [None]
    compute = 0 if demand.soft else demand.compute
    need = Held(demand.memory_mib, compute, whole=False)
    fixed = {part.uuid for parts in own.values() for part in parts if not part.whole}

    def left(gpu: NodeGpu) -> tuple[int, int, int]:
        there = [held[gpu.uuid] for held in others if gpu.uuid in held]
        memory = gpu.memory_mib - sum(held.memory_mib for held in there)
        return memory, -sum(held.hard_compute for held in there), gpu.index

    fitting = [
        gpu
        for gpu in usable
        if gpu.may_be_sliced
        and (not fixed or gpu.uuid in fixed)
        and not room_problem({gpu.uuid: need}, others, {gpu.uuid: gpu})
    ]
    return [*sorted(fitting, key=left)]


def _parts(
    demand: GpuDemand,
    whole: Sequence[NodeGpu],
    shared: NodeGpu | None,
    wanted: Mapping[str, frozenset[str]],
) -> Chosen:
    """Divide the GPUs among the containers; those of init containers that have ended come again."""
    chosen: Chosen = {}
    running: set[str] = set()
    for request in demand.requests:
        liked = wanted.get(request.container, frozenset())
        free = [gpu for gpu in whole if gpu.uuid not in running]
        own = sorted(free, key=lambda g: (g.uuid not in liked, g.index))[: request.whole]
        if not request.init:
            running.update(gpu.uuid for gpu in own)
        chosen[request.container] = [
            AssignedGpu(gpu.uuid, gpu.index, gpu.memory_mib, 100, whole=True) for gpu in own
        ]
        if shared and request.memory_mib:
            chosen[request.container] = [
                AssignedGpu(
                    shared.uuid, shared.index, request.memory_mib, request.compute, whole=False
                )
            ]
    return chosen


def _nothing_fits(demand: GpuDemand) -> str:
    asks = []
    if demand.memory_mib:
        share = "soft" if demand.soft or not demand.compute else f"{demand.compute} %"
        asks.append(f"{demand.memory_mib} MiB and {share} compute on one GPU")
    if demand.whole:
        asks.append(f"{counted(demand.whole, 'GPU')} that nobody has a part of")
    return (
        f"no GPUs of this node have room for it: it asks for {' and '.join(asks)}. Let "
        f"{names.SCHEDULER} place it (schedulerName), which knows the room on each GPU"
    )

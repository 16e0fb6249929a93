"""How much of each GPU pods hold: a pod's most at one moment, from its first container to its end.

All of a pod is counted when its first container starts. If each container were counted when it
starts, two pods could each start one and then wait for the other for ever.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from alnair.model.api_types import AssignedGpu
from alnair.model.plurals import counted
from alnair.model.pod_requests import ContainerRequests, most_at_once
from alnair.model.workload import GpuDemand
from alnair.sharing.matching.node_state import NodeGpu, PodOnNode, Started

Parts = Mapping[str, Sequence[AssignedGpu]]


class Held(msgspec.Struct, frozen=True):
    """What a pod holds of one GPU: MiB, hard percent, or all of it."""

    memory_mib: int
    hard_compute: int
    whole: bool


#: GPU → what a pod holds of it.
PodHolds = Mapping[str, Held]


def held_by(demand: GpuDemand | None, containers: Parts) -> PodHolds:
    """Return what a pod holds of each GPU, at the moment when it is most.

    Args:
        demand: Says in which order containers run. Without it all are taken to run at once and
            their shares to be hard, which is the most that it can be.
        containers: Container → its parts.
    """
    ends_first = demand.init_containers() if demand else frozenset()
    order = [request.container for request in demand.requests] if demand else []
    order += [name for name in containers if name not in order]
    amounts: dict[str, list[tuple[ContainerRequests, AssignedGpu]]] = {}
    for name in order:
        runs = ContainerRequests({}, init=name in ends_first)
        for part in containers.get(name, ()):
            amounts.setdefault(part.uuid, []).append((runs, part))
    is_soft = demand is not None and demand.soft
    return {
        uuid: Held(
            most_at_once((runs, part.memory_mib) for runs, part in parts),
            0 if is_soft else most_at_once((runs, part.compute) for runs, part in parts),
            any(part.whole for _, part in parts),
        )
        for uuid, parts in amounts.items()
    }


def holds(pod: PodOnNode | None, started: Parts) -> PodHolds:
    """Return what a pod holds: what it started with, and for the rest what it is assigned."""
    if pod is None:
        return held_by(None, started)
    return held_by(pod.demand, {**pod.assigned, **started})


def held_by_others(uid: str, pods: Mapping[str, PodOnNode], started: Started) -> list[PodHolds]:
    """Return what each pod that has started holds, apart from this one."""
    return [holds(pods.get(u), parts) for u, parts in started.items() if u != uid]


def room_problem(need: PodHolds, others: Iterable[PodHolds], gpus: Mapping[str, NodeGpu]) -> str:
    """Say on which GPU there is no room for a pod, with the numbers; empty if there is.

    Args:
        need: What it would hold.
        others: What the others hold.
        gpus: All of the node, by uuid; those of `need` are among them.
    """
    taken = list(others)
    for uuid, own in need.items():
        gpu = gpus[uuid]
        there = [other[uuid] for other in taken if uuid in other]
        memory = sum(held.memory_mib for held in there)
        compute = sum(held.hard_compute for held in there)
        where = f"GPU {gpu.index} ({uuid})"
        if any(held.whole for held in there):
            return f"{where} is another pod's, whole"
        if own.whole and there:
            return f"{where} is asked for whole, and {counted(len(there), 'pod')} have slices of it"
        if not own.whole and memory + own.memory_mib > gpu.memory_mib:
            return (
                f"{where} has {gpu.memory_mib} MiB: others hold {memory}, "
                f"and this pod asks for {own.memory_mib}"
            )
        if compute + own.hard_compute > 100:
            return (
                f"{where} has 100 % of compute: others hold {compute}, "
                f"and this pod asks for {own.hard_compute}"
            )
    return ""

"""Whether a container may start, and with which GPUs, from what the kubelet says: ids.

Never guessed: what is not sure waits. The assignment decides which GPUs, whatever ids the kubelet
chose. The order of the questions is that of their answers' weight: first whose ids these are, then
what the pod wants, then what it was given, and at last whether there is room now.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from alnair.model import names
from alnair.model.api_types import AssignedGpu
from alnair.model.plurals import counted
from alnair.model.workload import GpuDemand
from alnair.sharing.matching.assignment_check import assignment_problem, parts_problem
from alnair.sharing.matching.node_state import Allocation, NodeGpu, PodOnNode, Started, stays
from alnair.sharing.matching.outcomes import AGAIN, Choose, ContainerStart, Refuse, Start, Wait
from alnair.sharing.matching.room import held_by_others, holds, room_problem

#: Namespace, pod and container, as the kubelet's pod-resources API calls them.
Listed = tuple[str, str, str]


def start(
    resource: str,
    ids: frozenset[str],
    allocations: Iterable[Allocation],
    listed: Collection[Listed],
    pods: Mapping[str, PodOnNode],
    gpus: Sequence[NodeGpu],
    started: Started,
    *,
    aligned: bool = False,
) -> Start | Choose | Wait | Refuse:
    """Decide on a container that the kubelet is about to start.

    Args:
        resource: Of the device plugin that is called.
        ids: All that the container has of it.
        allocations: The kubelet's checkpoint.
        listed: Who holds any of the ids, by the pod-resources API. It does not know init
            containers, apart from sidecars.
        pods: Bound to this node, by uid.
        gpus: Of this node; empty while the driver has not told them.
        started: Containers whose start was allowed before.
        aligned: The kubelet aligns a pod's devices, cores and memory to NUMA nodes, so the GPUs
            must be near to those that it chose.
    """
    known = list(allocations)
    same = _whose(resource, ids, known, listed, pods)
    if isinstance(same, Wait):
        return same
    pod = pods[same[0].pod_uid]
    problem = _spec_problem(pod, resource, same)
    if problem or pod.demand is None:
        return Refuse(f"{pod.title} {problem}", is_final=True)
    if not gpus:
        return Wait(f"the GPUs of this node are not known yet: {AGAIN}")
    if pod.assignment is None and not pod.assignment_problem:
        return Choose(pod, _allocated_gpus(pod, known))
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    starts = tuple(
        ContainerStart(a.container, tuple(pod.assigned.get(a.container, ())), a.device)
        for a in same
    )
    own = started.get(pod.uid, {})
    problem = _given_problem(pod, pod.demand, starts, by_uuid, own)
    if not problem and aligned and resource == names.GPU:
        problem = _far_problem(ids, starts, by_uuid)
    if problem:
        text = f"{pod.title} cannot start as annotation {names.GPU_ASSIGNMENT} says: {problem}"
        return Refuse(text, is_final=False)
    return _in_turn(pod, pods, by_uuid, started) or Start(pod, starts)


def _whose(
    resource: str,
    ids: frozenset[str],
    allocations: Sequence[Allocation],
    listed: Collection[Listed],
    pods: Mapping[str, PodOnNode],
) -> list[Allocation] | Wait:
    """Return the allocations of one known pod that have exactly these ids, or why not."""
    what = f"{len(ids)} ids of {resource}"
    touched = [a for a in allocations if a.resource == resource and a.ids & ids]
    owners = {a.pod_uid for a in touched}
    if len(owners) > 1:
        return Wait(
            f"the kubelet's checkpoint gives {what} to {counted(len(owners), 'pod')} "
            f"({', '.join(sorted(owners))}): {AGAIN}"
        )
    same = [a for a in touched if a.ids == ids]
    if not same:
        return Wait(f"the kubelet's checkpoint does not say whose {what} are: {AGAIN}")
    pod = pods.get(same[0].pod_uid)
    if pod is None:
        return Wait(f"pod {same[0].pod_uid} is not known from the API server yet: {AGAIN}")
    containers = {a.container for a in touched}
    for namespace, name, container in listed:
        if (namespace, name) != (pod.namespace, pod.name) or container not in containers:
            return Wait(
                f"{what} are {pod.title}'s in the kubelet's checkpoint, but its pod-resources API "
                f"gives some to container {container!r} of pod {namespace}/{name}: {AGAIN}"
            )
    # Init containers are not listed, apart from sidecars; all others that ask for GPUs must be.
    requests = pod.demand.requests if pod.demand else ()
    must_be_listed = {r.container for r in requests if not r.init}
    for name in must_be_listed.intersection(a.container for a in same):
        if name not in {container for _, _, container in listed}:
            return Wait(
                f"{what} are {pod.title}'s in the kubelet's checkpoint, but its pod-resources API "
                f"does not list container {name!r} with them: {AGAIN}"
            )
    return same


def _spec_problem(pod: PodOnNode, resource: str, same: Sequence[Allocation]) -> str:
    """Say what is wrong with the pod itself; empty if nothing is."""
    if pod.is_ended:
        return "has ended"
    if pod.demand is not None and pod.demand.problem:
        return f"asks for what no GPU can give: {pod.demand.problem}"
    requests = {r.container: r for r in pod.demand.requests} if pod.demand else {}
    for allocation in same:
        request = requests.get(allocation.container)
        if request is None or bool(request.whole) != (resource == names.GPU):
            return (
                f"has container {allocation.container!r} with {resource}, but without "
                f"{names.VGPU_MEMORY}: do not write {names.VGPU} by hand, ask for "
                f"{names.VGPU_MEMORY} (MiB) and {names.VGPU} is added"
            )
    return ""


def _given_problem(
    pod: PodOnNode,
    demand: GpuDemand,
    starts: Sequence[ContainerStart],
    gpus: Mapping[str, NodeGpu],
    own: Mapping[str, tuple[AssignedGpu, ...]],
) -> str:
    """Say what is wrong with what the pod was given; empty if nothing is."""
    if pod.assignment_problem:
        return pod.assignment_problem
    if problem := assignment_problem(demand, pod.assigned, gpus):
        return problem
    for name, parts in own.items():
        if parts != tuple(pod.assigned.get(name, ())):
            return f"it was changed after container {name!r} had started with other GPUs"
    return parts_problem([part for s in starts for part in s.parts], gpus)


def _far_problem(
    ids: frozenset[str], starts: Sequence[ContainerStart], gpus: Mapping[str, NodeGpu]
) -> str:
    """Say whether the assigned GPUs are near other cores than the kubelet gave; empty if not."""
    chosen = {gpus[uuid].numa for uuid in ids if uuid in gpus}
    for begun in starts:
        assigned = {gpus[part.uuid].numa for part in begun.parts}
        if assigned != chosen:
            return (
                f"its GPUs are near NUMA nodes {_numbers(assigned)}, and the kubelet's topology "
                f"manager chose cores and GPUs near {_numbers(chosen)}"
            )
    return ""


def _in_turn(
    pod: PodOnNode,
    pods: Mapping[str, PodOnNode],
    gpus: Mapping[str, NodeGpu],
    started: Started,
) -> Wait | Refuse | None:
    """Return None if there is room now.

    Whoever gave the pod its GPUs may have counted on pods that are leaving; those are waited for.
    Pods that stay were given the same room, and only another place helps.
    """
    need = holds(pod, started.get(pod.uid, {}))
    problem = room_problem(need, held_by_others(pod.uid, pods, started), gpus)
    if not problem:
        return None
    staying = {uid: parts for uid, parts in started.items() if stays(pods.get(uid))}
    if room_problem(need, held_by_others(pod.uid, pods, staying), gpus):
        return Refuse(f"{pod.title} has no room: {problem}", is_final=False)
    return Wait(f"{pod.title} has no room yet: {problem}; some of them are leaving: {AGAIN}")


def _allocated_gpus(
    pod: PodOnNode, allocations: Iterable[Allocation]
) -> Mapping[str, frozenset[str]]:
    return {
        a.container: a.ids for a in allocations if a.pod_uid == pod.uid and a.resource == names.GPU
    }


def _numbers(nodes: Collection[int | None]) -> str:
    return ", ".join(sorted("unknown" if n is None else str(n) for n in nodes)) or "none"

"""Whether an assignment gives a pod what it asks for, on GPUs that are there."""

from collections.abc import Iterator, Mapping, Sequence

from alnair.model.api_types import AssignedGpu
from alnair.model.workload import GpuDemand, GpuRequest
from alnair.sharing.matching.node_state import NodeGpu


def assignment_problem(
    demand: GpuDemand,
    assigned: Mapping[str, Sequence[AssignedGpu]],
    gpus: Mapping[str, NodeGpu],
) -> str:
    """Say what is wrong with an assignment; empty if nothing is.

    Args:
        demand: What the pod asks for.
        assigned: Container → its parts.
        gpus: All of the node, by uuid.
    """
    return next(_problems(demand, assigned, gpus), "")


def parts_problem(parts: Sequence[AssignedGpu], gpus: Mapping[str, NodeGpu]) -> str:
    """Say why nothing may start on one of these parts' GPUs now; empty if it may.

    Args:
        parts: Of the containers that are about to start; those of others do not matter yet.
        gpus: All of the node, by uuid; the parts' are among them.
    """
    for part in parts:
        gpu = gpus[part.uuid]
        if gpu.problem:
            return f"GPU {gpu.index} ({gpu.uuid}) takes no new containers: {gpu.problem}"
        if not part.whole and not gpu.may_be_sliced:
            return f"GPU {gpu.index} ({gpu.uuid}) is in MIG mode, so it has no slices"
    return ""


def _problems(
    demand: GpuDemand,
    assigned: Mapping[str, Sequence[AssignedGpu]],
    gpus: Mapping[str, NodeGpu],
) -> Iterator[str]:
    for request in demand.requests:
        if problem := _unlike(request, assigned.get(request.container, ())):
            yield problem
    for name in assigned.keys() - {request.container for request in demand.requests}:
        yield f"it names the container {name!r}, which asks for no GPU"
    parts = [part for container in assigned.values() for part in container]
    for part in parts:
        if part.uuid.startswith("MIG-"):
            yield (
                f"{part.uuid} is a MIG device, which no assignment names, and of which there are "
                "no slices: let the pod ask for nvidia.com/mig-PROFILE"
            )
        elif part.uuid not in gpus:
            yield f"GPU {part.uuid} is not on this node"
    whole = {part.uuid for part in parts if part.whole}
    sliced = {part.uuid for part in parts if not part.whole}
    if len(sliced) > 1:
        yield f"the pod's slices lie on {len(sliced)} GPUs ({_list(sliced)}), not on one"
    if both := whole & sliced:
        yield f"GPU {_list(both)} is given whole and in slices"
    if len(whole) != demand.whole:
        yield f"it names {len(whole)} whole GPUs, but the pod asks for {demand.whole}"
    yield from _given_twice(demand, assigned)


def _unlike(request: GpuRequest, parts: Sequence[AssignedGpu]) -> str:
    if request.whole:
        wanted = f"{request.whole} whole GPUs"
        fits = (
            all(part.whole for part in parts)
            and len({part.uuid for part in parts}) == len(parts) == request.whole
        )
    else:
        wanted = f"{request.memory_mib} MiB and {request.compute} % of one GPU"
        fits = [(p.whole, p.memory_mib, p.compute) for p in parts] == [
            (False, request.memory_mib, request.compute)
        ]
    given = ", ".join(map(_described, parts)) or "nothing"
    return "" if fits else f"container {request.container!r} asks for {wanted}, but gets {given}"


def _given_twice(demand: GpuDemand, assigned: Mapping[str, Sequence[AssignedGpu]]) -> Iterator[str]:
    """Whole GPUs come again only after an init container that has ended."""
    running: set[str] = set()
    for request in demand.requests:
        own = {part.uuid for part in assigned[request.container] if part.whole}
        if twice := own & running:
            yield f"GPU {_list(twice)} is given whole to two containers that run at once"
        if not request.init:
            running |= own


def _described(part: AssignedGpu) -> str:
    if part.whole:
        return f"the whole GPU {part.uuid}"
    return f"{part.memory_mib} MiB and {part.compute} % of GPU {part.uuid}"


def _list(uuids: set[str]) -> str:
    return ", ".join(sorted(uuids))

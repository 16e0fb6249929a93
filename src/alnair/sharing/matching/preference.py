"""Which ids of whole GPUs the kubelet had better allocate, so that they are the assigned ones.

It is advice: the kubelet does not say for which pod it asks, and what is assigned holds anyway.
"""

from collections.abc import Iterable, Sequence

from alnair.model import names
from alnair.sharing.matching.node_state import Allocation, PodOnNode


def preferred_ids(
    size: int,
    available: Sequence[str],
    must_include: Sequence[str],
    pods: Iterable[PodOnNode],
    allocations: Iterable[Allocation],
) -> list[str]:
    """Return which of the available GPUs the kubelet should allocate.

    They are those of the oldest pod that waits for just so many. If there is none, a pod of another
    scheduler is asked for, which gets GPUs that nobody was given, as far as there are.

    Args:
        size: How many, with those that must be included.
        available: UUIDs of GPUs that the kubelet may allocate, with those that must be included.
        must_include: UUIDs that are reused from the pod's init containers.
        pods: Bound to this node.
        allocations: The kubelet's checkpoint.
    """
    held = {(a.pod_uid, a.container) for a in allocations if a.resource == names.GPU}
    assigned: set[str] = set()
    waiting: list[list[str]] = []
    for pod in sorted(pods, key=lambda p: (p.created, p.uid)):
        if pod.is_ended:
            continue
        for container, parts in pod.assigned.items():
            assigned.update(part.uuid for part in parts)
            if (pod.uid, container) not in held:
                waiting.append([part.uuid for part in parts if part.whole])
    may = {*available, *must_include}
    for uuids in waiting:
        if len(uuids) == size and may.issuperset(uuids) and set(uuids).issuperset(must_include):
            return [*must_include, *(uuid for uuid in uuids if uuid not in must_include)]
    others = [uuid for uuid in available if uuid not in must_include]
    others.sort(key=lambda uuid: uuid in assigned)
    return [*must_include, *others][:size]

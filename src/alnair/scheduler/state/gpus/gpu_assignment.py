"""Between bookings (what the device table accounts) and assignments (what containers are told)."""

from collections.abc import Mapping, Sequence
from functools import cache

from alnair.model.nodes import Gpu
from alnair.model.workload import GpuDemand, GpuPart, Pod, PodGpuAssignment
from alnair.scheduler.state.gpus.devices import Booking, Devices


def assign(demand: GpuDemand, bookings: Sequence[Booking], gpus: Sequence[Gpu]) -> PodGpuAssignment:
    """Return each container's GPUs: of the whole ones, none is given to two that run at once.

    Init containers end before what comes after them starts, so their GPUs are given again.
    Empty on nodes whose GPUs have no identity: there the device plugin chooses.
    """
    if any(not gpus[b.slot].uuid for b in bookings):
        return ()
    whole = [gpus[b.slot] for b in bookings if b.whole]
    shared = next((gpus[b.slot] for b in bookings if not b.whole), None)
    taken = 0
    parts = []
    for request in demand.requests:
        shares = [
            GpuPart(gpu.uuid, gpu.index, gpu.memory_mib, 100, whole=True)
            for gpu in whole[taken : taken + request.whole]
        ]
        if not request.init:
            taken += request.whole
        if request.memory_mib and shared:
            shares.append(
                GpuPart(shared.uuid, shared.index, request.memory_mib, request.compute, whole=False)
            )
        parts.append((request.container, tuple(shares)))
    return tuple(parts)


def assigned(pod: Pod, row: int, devices: Devices) -> tuple[Booking, ...] | None:
    """Return what the pod's assignment says that it holds of the row's GPUs.

    None if it says nothing, or names a GPU that is not there.
    """
    demand = pod.spec.gpu
    if demand is None:
        return ()
    shares = [share for _, parts in pod.assignment for share in parts]
    if not shares:
        return None
    slots = {gpu.uuid: slot for slot, gpu in enumerate(devices.gpus[row]) if gpu.uuid}
    if any(share.uuid not in slots for share in shares):
        return None
    whole = sorted({slots[s.uuid] for s in shares if s.whole})
    shared = sorted({slots[s.uuid] for s in shares if not s.whole})
    return tuple(
        [Booking(slot, demand.memory_mib, demand.compute, demand.soft) for slot in shared]
        + [Booking(slot, whole=True) for slot in whole]
    )


def planned_bookings(
    demand: GpuDemand, indices: Mapping[str, Sequence[int]], gpus: Sequence[Gpu]
) -> tuple[Booking, ...] | None:
    """Return what a gang's plan gives the pod, or None if that is not what it asks for.

    Args:
        demand: of the pod.
        indices: container → indices of its GPUs, as planned.
        gpus: of the planned node.
    """
    slots = {gpu.index: slot for slot, gpu in enumerate(gpus)}
    whole: set[int] = set()
    shared: set[int] = set()
    for request in demand.requests:
        own = indices.get(request.container, ())
        if len(own) != (request.whole or 1) or any(index not in slots for index in own):
            return None
        (whole if request.whole else shared).update(slots[index] for index in own)
    if len(whole) != demand.whole or len(shared) != bool(demand.memory_mib) or whole & shared:
        return None
    if any(not demand.accepts(gpus[slot].model) for slot in whole | shared):
        return None
    return (
        *(Booking(slot, demand.memory_mib, demand.compute, demand.soft) for slot in shared),
        *map(_whole, sorted(whole)),
    )


def guess(pod: Pod, row: int, devices: Devices) -> tuple[Booking, ...]:
    """Return where to count a pod that does not say which GPUs it holds.

    Such as one that another scheduler placed. It is counted on the GPUs with the highest index that
    have room, and on the last ones if none has: counting it somewhere refuses what might not fit;
    not counting it would promise the same GPU twice.
    """
    demand = pod.spec.gpu
    count = len(devices.gpus[row])
    if demand is None or not count:
        return ()
    free = devices.free_slots(row)
    order = sorted(range(count), key=lambda slot: (not free[slot], -slot))
    whole = [_whole(slot) for slot in order[: demand.whole]]
    if not demand.memory_mib:
        return tuple(whole)
    rest = sorted(set(range(count)) - {b.slot for b in whole}, reverse=True) or order
    has_room = (devices.slice_memory[:, row] >= demand.memory_mib) & (
        devices.compute_free[:, row] >= demand.compute
    )
    slot = next((s for s in rest if has_room[s]), rest[0])
    return (*whole, Booking(slot, demand.memory_mib, demand.compute, demand.soft))


@cache
def _whole(slot: int) -> Booking:
    """Return the booking of a whole GPU: the same object each time, for most pods hold some."""
    return Booking(slot, whole=True)

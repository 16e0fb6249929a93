"""Between bookings (what the device table accounts) and assignments (what each container is told)."""

from collections.abc import Sequence

from alnair.model.cluster import Gpu
from alnair.model.workload import Assignment, GpuDemand, GpuShare, Pod
from alnair.scheduler.devices import Booking, Devices


def assign(demand: GpuDemand, bookings: Sequence[Booking], gpus: Sequence[Gpu]) -> Assignment:
    """Return each container's GPUs. Containers share no whole GPU, except that init containers reuse them.

    Empty on nodes whose GPUs have no identity: there the device plugin chooses.
    """
    if any(not gpus[b.slot].uuid for b in bookings):
        return ()
    whole = [gpus[b.slot] for b in bookings if b.whole]
    shared = next((gpus[b.slot] for b in bookings if not b.whole), None)
    taken = 0
    parts = []
    for request in demand.requests:
        start = 0 if request.init else taken
        shares = [
            GpuShare(gpu.uuid, gpu.index, gpu.memory_mib, 100, whole=True)
            for gpu in whole[start : start + request.whole]
        ]
        if not request.init:
            taken += request.whole
        if request.memory_mib and shared:
            shares.append(
                GpuShare(
                    shared.uuid, shared.index, request.memory_mib, request.compute, whole=False
                )
            )
        parts.append((request.container, tuple(shares)))
    return tuple(parts)


def bookings_of(pod: Pod, row: int, devices: Devices) -> tuple[Booking, ...]:
    """Return what a bound pod holds of the row's GPUs.

    A pod without a readable assignment, such as one that another scheduler placed, is counted on the GPUs
    with the highest index that have room, and on the last ones if none has: counting it somewhere refuses
    what might not fit; not counting it would promise the same GPU twice.
    """
    demand = pod.spec.gpu
    gpus = devices.gpus[row] if row < len(devices.gpus) else ()
    if demand is None or not gpus:
        return ()
    slots = {gpu.uuid: slot for slot, gpu in enumerate(gpus) if gpu.uuid}
    shares = [share for _, parts in pod.assignment for share in parts]
    if not shares or any(share.uuid not in slots for share in shares):
        return _guess(demand, row, devices)
    whole = sorted({slots[s.uuid] for s in shares if s.whole})
    shared = sorted({slots[s.uuid] for s in shares if not s.whole})
    return tuple(
        [Booking(slot, demand.memory_mib, demand.compute, demand.hard) for slot in shared]
        + [Booking(slot, whole=True) for slot in whole]
    )


def _guess(demand: GpuDemand, row: int, devices: Devices) -> tuple[Booking, ...]:
    count = len(devices.gpus[row])
    free = devices.free_slots(row)
    order = sorted(range(count), key=lambda slot: (not free[slot], -slot))
    whole = [Booking(slot, whole=True) for slot in order[: demand.whole]]
    if not demand.memory_mib:
        return tuple(whole)
    rest = [slot for slot in reversed(order) if slot not in {b.slot for b in whole}] or order
    slot = next((s for s in rest if devices.slice_memory[s, row] >= demand.memory_mib), rest[-1])
    return (*whole, Booking(slot, demand.memory_mib, demand.compute, demand.hard))

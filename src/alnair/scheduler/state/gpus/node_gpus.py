"""Which GPUs a node has, and bookings of them when it is described anew."""

from typing import Final

import msgspec

from alnair.model import names
from alnair.model.nodes import Gpu, Node
from alnair.scheduler.state.gpus.devices import Booking

#: More nameless GPUs on a node than this are not believed.
_MOST_NAMELESS: Final = 256


def carried_over(
    bookings: tuple[Booking, ...], before: tuple[Gpu, ...], now: tuple[Gpu, ...]
) -> tuple[Booking, ...] | None:
    """Return the bookings on the same GPUs, described anew; None if some are gone."""
    slots = {gpu.uuid: slot for slot, gpu in enumerate(now) if gpu.uuid}
    uuids = [before[b.slot].uuid for b in bookings]
    if not bookings or any(uuid not in slots for uuid in uuids):
        return None
    return tuple(
        msgspec.structs.replace(b, slot=slots[uuid])
        for b, uuid in zip(bookings, uuids, strict=True)
    )


def gpus_of(node: Node) -> tuple[tuple[Gpu, ...], float]:
    """Return the node's GPUs, and how far soft compute may be promised beyond 100 %.

    A node that publishes a number of GPUs but does not describe them has that many nameless ones,
    which can only be used whole. A description that cannot be read means none: better no GPU than a
    wrong one.
    """
    if node.problem:
        return (), 1.0
    gpus = node.gpus
    if not gpus:
        model = node.labels.get(names.GPU_MODEL_LABEL, "")
        count = min(node.gpu_count, _MOST_NAMELESS)
        return tuple(Gpu("", index, model, 0) for index in range(count)), 1.0
    promised = node.allocatable.get(names.VGPU_COMPUTE, 0)
    # What it publishes is without its unhealthy GPUs; it is all where an agent closes its node.
    healthy = sum(not gpu.problem for gpu in gpus) or len(gpus)
    return gpus, max(1.0, promised / (100 * healthy))

"""Which GPUs of a node a pod gets: connected to one another, and near its cores and memory."""

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from alnair.model import names
from alnair.model.workload import GpuDemand, PodSpec
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import Devices
from alnair.scheduler.state.gpus.gpu_links import Cliques
from alnair.scheduler.state.nodes.columns import Column, Mask
from alnair.scheduler.state.numa.numa_alignment import Alignment

#: Which GPU of a node takes a slice: the fullest that has room, or the emptiest. The one leaves
#: links between free GPUs whole, the other keeps off links that GPUs in use have.
Choice = Literal["tightest", "emptiest"]


class Near(msgspec.Struct, frozen=True):
    """GPUs by NUMA zone, as bit masks, of the zones that have the pod's cores and memory."""

    zones: tuple[int, ...] = ()
    #: The node aligns to a single zone: GPUs elsewhere would keep the pod from starting.
    must: bool = False
    #: Where each container has a zone of its own: that zone's GPUs, per container with whole GPUs.
    parts: tuple[int, ...] = ()

    @property
    def mask(self) -> int:
        """The GPUs of all these zones."""
        return sum(self.zones)

    def pick(self, free: int, count: int) -> int:
        """Return which GPUs to choose from: of the first zone with enough, where that is a must."""
        if self.must:
            for zone in self.zones:
                if (zone & free).bit_count() >= count:
                    return zone & free
        return free


_ANYWHERE = Near()


def near_gpus(spec: PodSpec, row: int, cluster: Cluster) -> Near:
    """Return the GPUs of the row that are near what the pod can have of cores and memory."""
    zones = cluster.zones
    if not zones.any or not zones.known[row]:
        return _ANYWHERE
    alignment = Alignment(spec, zones, cluster.columns)
    gpus = cluster.devices.gpus[row]

    def of_zone(slot: int | None) -> int:
        number = -1 if slot is None else int(zones.ids[slot, row])
        return sum(1 << i for i, gpu in enumerate(gpus) if gpu.numa == number)

    fits = alignment.fits_any(alignment.pod, np.array([row], np.intp))[:, 0]
    masks = tuple(mask for slot in np.flatnonzero(fits).tolist() if (mask := of_zone(slot)))
    must = bool(zones.aligned[row])
    parts: tuple[int, ...] = ()
    if must and not zones.pod_scope[row] and spec.containers:
        chosen = alignment.chosen(row)
        parts = tuple(of_zone(slot) for part, slot in chosen if dict(part.requests).get(names.GPU))
    return Near(masks, must, parts)


def slice_slot(
    demand: GpuDemand,
    devices: Devices,
    row: int,
    fits: Mask,
    free: Mask,
    near: Near,
    choice: Choice,
    gpu_scores: Column | None = None,
) -> int | None:
    """Return the GPU for the slice.

    The best-liked model goes first, then the GPU that plugins like, then the GPU by what it has
    left, then one that is near, then one that is missed least.

    Args:
        demand: of the pod.
        devices: the device table.
        row: of the node.
        fits: GPUs with room for the slice.
        free: GPUs that could be given whole.
        near: the pod's zones.
        choice: the fullest or the emptiest.
        gpu_scores: (GPUs per node,), what plugins score each GPU; None if no plugin does.
    """
    if demand.whole and free.sum() <= demand.whole:
        fits = fits & ~free  # the free ones are needed whole
    fitting = _mask(fits)
    slots = _slots(near.pick(fitting, 1))
    if not slots:
        return None
    compute, memory = devices.compute_free[:, row].tolist(), devices.slice_memory[:, row].tolist()
    sign = 1 if choice == "tightest" else -1
    unused, mask = _mask(free), near.mask
    weights, gpus = dict(demand.weights), devices.gpus[row]
    wired = devices.wired[row]
    used = _mask(devices.held_slots(row))

    def order(slot: int) -> tuple[int, float, float, float, bool, int, int]:
        score_key = -float(gpu_scores[slot]) if gpu_scores is not None else 0.0
        weight_key = -weights.get(gpus[slot].model, 0)
        far = bool(mask) and not mask >> slot & 1
        missed = 0
        if wired and unused >> slot & 1:
            # Opening a GPU may break a clique that others could use whole.
            missed = -wired.left(unused, slot) if sign > 0 else wired.between(used, 1 << slot)
        return weight_key, score_key, sign * compute[slot], sign * memory[slot], far, missed, slot

    return min(slots, key=order)


def whole_slots(
    demand: GpuDemand, devices: Devices, row: int, free: Mask, near: Near, choice: Choice
) -> list[int] | None:
    """Return the whole GPUs for the pod, container by container; None if there are too few.

    Args:
        demand: of the pod.
        devices: the device table.
        row: of the node.
        free: GPUs that could be given.
        near: the pod's zones.
        choice: among sets that are connected alike, the one that breaks the weakest links between
            free GPUs, or that has the weakest links with GPUs in use.
    """
    mask = _mask(free)
    if mask.bit_count() < demand.whole:
        return None
    if demand.weights:
        mask = _heaviest(demand, devices, row, mask)
    wired = devices.wired[row]
    if near.parts and (slots := _each_in_its_zone(demand, wired, mask, near.parts)):
        return slots
    mask = near.pick(mask, demand.whole)
    if wired is None:
        return _slots(mask)[: demand.whole]
    in_use = _mask(devices.held_slots(row)) if choice == "emptiest" else 0
    chosen = wired.best(mask, demand.whole, near.mask, in_use)
    assert chosen is not None  # there are enough
    return _by_container(demand, wired, chosen)


def _each_in_its_zone(
    demand: GpuDemand, wired: Cliques | None, mask: int, zones: Sequence[int]
) -> list[int] | None:
    """Return the GPUs container by container, each in its zone; None if that cannot be had."""
    wanted = [r.whole for r in demand.requests if r.whole and not r.init]
    slots: list[int] = []
    for count, zone in zip(wanted, zones, strict=True):
        part = _slots(mask & zone)[:count]
        if wired and len(part) == count:
            part = _slots(wired.best(mask & zone, count) or 0)
        if len(part) < count:
            return None
        slots += part
        mask &= ~sum(1 << slot for slot in part)
    # Init containers may want more than those that run.
    return [*slots, *_slots(mask)][: demand.whole]


def _by_container(demand: GpuDemand, wired: Cliques, chosen: int) -> list[int]:
    """Return the chosen GPUs in the order in which containers get them, each a connected part."""
    slots: list[int] = []
    for request in demand.requests:
        if request.init or not request.whole:
            continue
        part = wired.best(chosen, request.whole)
        assert part is not None  # the pod has what its containers have together
        slots += _slots(part)
        chosen &= ~part
    return slots + _slots(chosen)


def _heaviest(demand: GpuDemand, devices: Devices, row: int, mask: int) -> int:
    """Return the GPUs of the best-liked models that are enough."""
    weights = dict(demand.weights)
    weight_of = {slot: weights.get(devices.gpus[row][slot].model, 0) for slot in _slots(mask)}
    least = sorted(weight_of.values(), reverse=True)[demand.whole - 1]
    return sum(1 << slot for slot, weight in weight_of.items() if weight >= least)


def _mask(gpus: Mask) -> int:
    return int.from_bytes(np.packbits(gpus, bitorder="little").tobytes(), "little")


def _slots(mask: int) -> list[int]:
    return [slot for slot in range(mask.bit_length()) if mask >> slot & 1]

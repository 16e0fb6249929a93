"""The present state in numbers: who waits where, what is on the way, what the GPUs do.

It walks over all pods, so it is for being asked now and then and not for every decision.
"""

from collections import Counter

import msgspec
import numpy as np

from alnair.scheduler.engine.view import View
from alnair.scheduler.queue.unit import Place
from alnair.scheduler.state.accounts import State
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import CLOSED

_QUEUES = {Place.ACTIVE: "active", Place.BACKOFF: "backoff", Place.PARKED: "unschedulable"}
_MIB = 1024 * 1024


class GpuCensus(msgspec.Struct, frozen=True):
    """What the GPUs do.

    Attributes:
        free, shared, whole, unhealthy: number of GPUs in each state; the last ones take nothing
            new, whatever is on them.
        memory, memory_free: bytes; all memory of a GPU that is held whole is taken.
        compute, compute_free: GPUs' worth of compute.
        fragmentation: part (0-1) of the free memory that lies on shared GPUs, where no pod that
            asks for a whole GPU can use it; 0 if nothing is free.
        nodes_by_free: number of nodes with GPUs by how many of them are free: the largest pod of
            whole GPUs that fits is the largest number with a node.
    """

    free: int
    shared: int
    whole: int
    unhealthy: int
    memory: int
    memory_free: int
    compute: float
    compute_free: float
    fragmentation: float
    nodes_by_free: dict[int, int]


class SchedulerFigures(msgspec.Struct, frozen=True):
    """The present state in numbers.

    Attributes:
        pending: pods by queue: active, backoff, unschedulable, gated.
        unschedulable: waiting pods by (plugin that refuses them, scheduler name).
        nodes, pods, assumed: what is known; `assumed` = placed, and the API server has not said so.
        in_flight: Bindings on the way.
        gangs: by state: `waiting` (members are missing or do not fit), `planning` (placed, the plan
            is being written), `running` (minMember are placed).
        classes: evaluations that are kept.
    """

    pending: dict[str, int]
    unschedulable: dict[tuple[str, str], int]
    nodes: int
    pods: int
    assumed: int
    in_flight: int
    gangs: dict[str, int]
    classes: int
    gpus: GpuCensus


def census(view: View) -> SchedulerFigures:
    """Count."""
    pending = dict.fromkeys([*_QUEUES.values(), "gated"], 0)
    unschedulable: Counter[tuple[str, str]] = Counter()
    for unit in view.units():
        if unit.place is Place.NOT_QUEUED:
            continue
        pending[_QUEUES[unit.place]] += len(unit.pods)
        if unit.place is Place.PARKED:
            for record in unit.pods.values():
                for plugin in record.refused_by:
                    unschedulable[plugin, record.pod.scheduler] += 1
    records = view.pods.values()
    pending["gated"] = sum(r.pod.gated for r in records if r.state is State.PENDING)
    gangs = dict.fromkeys(("waiting", "planning", "running"), 0)
    for state in view.gangs():
        if state.members:
            lacking = state.gang is None or state.lacking()
            gangs["planning" if state.planning else "waiting" if lacking else "running"] += 1
    return SchedulerFigures(
        pending=pending,
        unschedulable=dict(unschedulable),
        nodes=len(view.cluster.columns),
        pods=len(records),
        assumed=sum(r.state is State.ASSUMED for r in records),
        in_flight=sum(r.in_flight and not r.awaits_storage for r in records),
        gangs=gangs,
        classes=view.classes,
        gpus=_gpus(view.cluster),
    )


def _gpus(cluster: Cluster) -> GpuCensus:
    devices, alive = cluster.devices, cluster.columns.alive
    everything = slice(0, alive.size)
    there = (devices.model >= 0) & alive
    free = devices.free_mask(everything) & alive
    closed = there & (devices.slice_memory == CLOSED)
    unhealthy = there & devices.unhealthy
    shared = there & ~free & ~closed
    # What is over-committed is nothing free.
    memory_free = np.where(there & ~closed, np.maximum(devices.slice_memory, 0), 0)
    compute_free = np.where(there & ~closed, np.maximum(devices.compute_free, 0), 0)
    left = float(memory_free.sum())
    counts = np.bincount(devices.whole_free[there.any(axis=0)].astype(int))
    return GpuCensus(
        free=int(free.sum()),
        shared=int(shared.sum()),
        whole=int((closed & ~unhealthy).sum()),
        unhealthy=int(unhealthy.sum()),
        memory=_MIB * sum(gpu.memory_mib for gpus in devices.gpus for gpu in gpus),
        memory_free=int(left) * _MIB,
        compute=float(there.sum()),
        compute_free=float(compute_free.sum()) / 100.0,
        fragmentation=float(memory_free[shared].sum()) / left if left else 0.0,
        nodes_by_free={number: int(count) for number, count in enumerate(counts)},
    )

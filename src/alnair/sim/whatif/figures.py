"""A cluster in a few figures, taken from the books of an engine."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from alnair.model import names
from alnair.model.gpu_demand import whole_gpus
from alnair.model.workload import PodSpec
from alnair.scheduler.advice.stranded_gpu import PodClass, Stranded
from alnair.scheduler.engine.view import View
from alnair.scheduler.state.accounts import State
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import ALL

#: GPUs of each pod of the largest gang that is looked for, unless no node has so many.
_GANG_GPUS: Final = 8


class Figures(msgspec.Struct, frozen=True):
    """How a cluster stands.

    Attributes:
        nodes: that take pods: not cordoned.
        gpus: on all nodes, cordoned or not.
        allocated: GPUs; a slice counts with its part of the memory or compute, whichever is more.
        whole_free: free whole GPUs of nodes that take pods.
        gang_gpus, largest_gang: how many pods of so many whole GPUs each would fit at once, if
            they ask for nothing else.
        fragmentation: F: free GPUs of nodes that take pods that a pod drawn from the workload could
            not use, on average (`alnair.scheduler.advice.stranded_gpu`). The workload is all known
            pods.
        waiting, running: pods without and with a node; those of DaemonSets do not count.
    """

    nodes: int
    gpus: int
    allocated: float
    whole_free: int
    gang_gpus: int
    largest_gang: int
    fragmentation: float
    waiting: int
    running: int


def mix(specs: Iterable[PodSpec]) -> tuple[PodClass, ...]:
    """Return the classes of these pods that ask for GPUs, each with its share of them."""
    counts = Counter(
        (
            dict(spec.requests).get("cpu", 0),
            spec.gpu.whole,
            spec.gpu.memory_mib,
            spec.gpu.compute,
            spec.gpu.models,
            spec.gpu.models_not,
        )
        for spec in specs
        if spec.gpu and not spec.gpu.problem
    )
    total = sum(counts.values())
    return tuple(PodClass(count / total, *key) for key, count in counts.most_common())


def figures(view: View, workload: tuple[PodClass, ...]) -> Figures:
    """Return the figures of the books.

    Args:
        view: of an engine between two steps.
        workload: that free GPUs should be of use to.
    """
    columns, devices = view.cluster.columns, view.cluster.devices
    alive = columns.alive[: columns.n]
    takes = alive & ~columns.unschedulable[: columns.n]
    count = devices.count[: columns.n]
    free = devices.whole_free[: columns.n]
    each = min(_GANG_GPUS, int(count.max(initial=0)))
    stranded = Stranded(workload, view.cluster).of(ALL)[: columns.n] if workload else free * 0
    pods = [r for r in view.pods.values() if not r.pod.daemon]
    return Figures(
        nodes=int(takes.sum()),
        gpus=int(count[alive].sum()),
        allocated=round(_allocated(view.cluster), 3),
        whole_free=int(free[takes].sum()),
        gang_gpus=each,
        largest_gang=_largest_gang(view, each) if each else 0,
        fragmentation=round(float(stranded[takes].sum()), 3),
        waiting=sum(r.state is State.PENDING for r in pods),
        running=sum(r.state in (State.ASSUMED, State.BOUND) for r in pods),
    )


def _allocated(cluster: Cluster) -> float:
    devices = cluster.devices
    total = np.maximum(devices.memory, 1.0)
    left = np.minimum(devices.slice_memory / total, devices.compute_free / 100.0).clip(0.0, 1.0)
    # Nameless GPUs have no memory: they are whole, and free or not.
    nameless = (devices.model >= 0) & (devices.memory == 0)
    left = np.where(nameless, devices.free_mask(ALL), left)
    present = devices.model >= 0
    return float((present * (1.0 - left)).sum())


def _largest_gang(view: View, each: int) -> int:
    """Return how many pods of so many whole GPUs fit at once."""
    demand = whole_gpus(each)
    spec = PodSpec(requests=((names.GPU, each), ("pods", 1)), gpu=demand)
    profile = view.profiles.get(names.SCHEDULER) or next(iter(view.profiles.values()))
    evaluation = view.evaluate(spec, profile)
    if evaluation.refusal is not None:
        return 0
    columns = view.cluster.columns
    rows = np.flatnonzero(evaluation.rank[: columns.n] >= 0)
    room = np.minimum(
        view.cluster.devices.whole_free[rows] // each,
        columns.free[columns.resource("pods"), rows],
    )
    return int(room.sum())

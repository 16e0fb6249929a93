"""Nodes and pods of a trace as values of the model, such that nothing is rounded.

The openb trace knows thousandths of GPUs and no GPU memory. Here a thousandth is 64 MiB and a share
asks for no compute, so a GPU has room for a share just if the trace says so, for every number of
thousandths. Cores and memory are those of the trace; the number of pods per node never binds.
"""

from typing import Final

from alnair.model.nodes import Gpu, Node
from alnair.model.workload import GpuDemand, GpuRequest, Pod, PodSpec
from alnair.scheduler.published import MIB_PER_MILLI
from alnair.scheduler.published.clustering import LABEL, company
from alnair.traces.arrivals import Arrival
from alnair.traces.openb import WHOLE, TraceNode, TracePod

_MIB: Final = 2**20
_PODS: Final = 1_000_000
_CONTAINER: Final = "main"


def node(listed: TraceNode) -> Node:
    """Return a node of the list."""
    return Node(
        listed.name,
        {"cpu": listed.cpu_milli, "memory": listed.memory_mib * _MIB, "pods": _PODS},
        gpus=tuple(
            Gpu(f"{listed.name}/{index}", index, listed.model, WHOLE * MIB_PER_MILLI)
            for index in range(listed.gpus)
        ),
    )


class TracePodMaker:
    """Makes pods; those that ask for the same share one spec.

    Args:
        scheduler: their schedulerName.
    """

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler
        self._specs: dict[tuple[object, ...], PodSpec] = {}

    def of(self, arrival: Arrival, created: float) -> Pod:
        """Return the pod of an arrival; `created` in seconds."""
        pod = arrival.pod
        key = (pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpu_milli, pod.models)
        spec = self._specs.get(key)
        if spec is None:
            spec = self._specs[key] = _spec(pod)
        labels = ((LABEL, company(spec)),) if spec.gpu else ()
        return Pod(
            arrival.name, "trace", arrival.name, spec, self._scheduler, created, labels=labels
        )


def _spec(pod: TracePod) -> PodSpec:
    asked = (("cpu", pod.cpu_milli), ("memory", pod.memory_mib * _MIB), ("pods", 1))
    return PodSpec(
        tuple(each for each in asked if each[1]),
        scored_cpu=pod.cpu_milli,
        scored_memory=pod.memory_mib * _MIB,
        gpu=_demand(pod) if pod.gpus else None,
    )


def _demand(pod: TracePod) -> GpuDemand:
    if pod.gpu_milli == WHOLE:
        request = GpuRequest(_CONTAINER, whole=pod.gpus)
    else:
        request = GpuRequest(_CONTAINER, memory_mib=pod.gpu_milli * MIB_PER_MILLI)
    return GpuDemand(
        (request,), whole=request.whole, memory_mib=request.memory_mib, models=pod.models
    )

"""Nodes and pods of traces as the live scheduler reads them, made once for all that are alike."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from alnair.kube.objects import simulated_nodes, trace_pods
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.wire import NodeWire, PodWire
from alnair.kube.resources import PODGROUPS
from alnair.model import names
from alnair.model.nodes import Node
from alnair.model.workload import Gang, Pod
from alnair.sim.jobs import Job
from alnair.traces.arrivals import Arrival
from alnair.traces.openb import WHOLE, TraceNode, TracePod

#: Any time will do: nothing is decided by when a node was described.
_WRITTEN = "2026-01-01T00:00:00Z"


def node(listed: TraceNode) -> Node:
    """Return the node as it comes out of `alnair up` and the projection of the live scheduler."""
    return project_node(msgspec.convert(simulated_nodes.manifest(listed, _WRITTEN), NodeWire))


class PodStamp:
    """Makes pods of a few shapes; all of a shape share one spec.

    Args:
        profile: Their schedulerName.
        nodes: Of the cluster; their GPU models decide how much memory a share of a GPU asks for.
        compute: Shares of GPUs ask for compute too.
    """

    def __init__(self, profile: str, nodes: Iterable[Node], *, compute: bool = True) -> None:
        self._profile = profile
        self._compute = compute
        self._models = sorted({gpu.model for node in nodes for gpu in node.gpus})
        self._project = PodProjector()
        self._made: dict[tuple[object, ...], Pod] = {}

    def pod(
        self, name: str, namespace: str, shape: TracePod, *, group: str = "", estimate: float = 0.0
    ) -> Pod:
        """Return a pod.

        Args:
            name: Of the pod.
            namespace: Where.
            shape: What it asks for; its own name is not read.
            group: Its PodGroup.
            estimate: Seconds that it is expected to run, as its annotation would say; 0 = unknown.
        """
        amounts = (shape.cpu_milli, shape.memory_mib, shape.gpus, shape.gpu_milli)
        key = (namespace, amounts, shape.models)
        model = self._made.get(key)
        if model is None:
            written = trace_pods.manifest(
                Arrival("", shape), namespace, self._profile, self._models, compute=self._compute
            )
            model = self._made[key] = self._project(msgspec.convert(written, PodWire))
        labels = model.labels
        if group:
            labels = tuple(sorted((*labels, (names.POD_GROUP_LABEL, group))))
        return msgspec.structs.replace(
            model, name=name, group=group, labels=labels, time_limit=round(estimate)
        )

    def job(
        self, job: Job, namespace: str, shapes: Sequence[TracePod], *, estimate: float = 0.0
    ) -> Job:
        """Return the job with a pod of each shape, as a gang if there are several."""
        if len(shapes) == 1:
            pod = self.pod(job.name, namespace, shapes[0], estimate=estimate)
            return msgspec.structs.replace(job, pods=(pod,))
        pods = tuple(
            self.pod(f"{job.name}-{i}", namespace, shape, group=job.name, estimate=estimate)
            for i, shape in enumerate(shapes)
        )
        gang = Gang(namespace, job.name, len(pods), 0.0, api=PODGROUPS.api_version)
        return msgspec.structs.replace(job, pods=pods, gang=gang)


def gpu_shape(gpus: int) -> TracePod:
    """Return what a pod with so many whole GPUs asks for, of a trace that says no more."""
    return TracePod("", 0, 0, gpus, WHOLE)


def parts(units: int, size: int) -> list[int]:
    """Return the pods of a job: as few as can be, with at most `size` units each, the last less."""
    whole, rest = divmod(units, size)
    return [size] * whole + ([rest] if rest else [])


def commonest(sizes: Iterable[int]) -> int:
    """Return the size of nodes that holds most of the cluster; of several the largest; 0 if none.

    A job of several nodes is cut into pods of this size: cut by the largest node, its pods would
    all wait for the few nodes of that size.
    """
    held: Counter[int] = Counter()
    for size in sizes:
        held[size] += size
    return max(held, key=lambda size: (held[size], size), default=0)

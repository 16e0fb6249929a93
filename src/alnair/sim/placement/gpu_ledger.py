"""Who is on which GPU of a trace's cluster, counted apart from the engine, and F of what is left.

It is the simulator's own word: it refuses what does not fit, whatever the engine believes.
"""

from collections.abc import Iterable, Sequence

from alnair.scheduler.published.fragmentation import FreeNode, WorkloadClass, node_fragmentation
from alnair.traces.openb import TraceNode, TracePod


class OverfullError(AssertionError):
    """A placement that does not fit: a bug of the engine or of the simulator."""


class NodeLedger:
    """Free cores, memory and GPUs of each node.

    Args:
        nodes: of the trace.
        workload: the target workload of F.

    Attributes:
        allocated: milli-GPUs in use.
        fragmented: F in milli-GPUs.
    """

    def __init__(self, nodes: Iterable[TraceNode], workload: Sequence[WorkloadClass]) -> None:
        self._workload = workload
        # Most nodes are in states that were seen before: empty, full, or with the same few pods.
        self._known: dict[FreeNode, float] = {}
        self._free = {
            n.name: (FreeNode(n.cpu_milli, (1000,) * n.gpus, n.model), n.memory_mib) for n in nodes
        }
        self._parts = {name: self._part(free) for name, (free, _) in self._free.items()}
        self.allocated = 0
        self.fragmented = sum(self._parts.values())

    def take(self, pod: TracePod, node: str, gpus: Sequence[int]) -> None:
        """Place a pod on these GPUs of a node.

        Raises:
            OverfullError: It does not fit there.
        """
        free, memory = self._free[node]
        milli = list(free.gpu_milli)
        for index in gpus:
            milli[index] -= pod.gpu_milli
        cpu = free.cpu_milli - pod.cpu_milli
        memory -= pod.memory_mib
        model_ok = not pod.models or free.model in pod.models
        if min(milli, default=0) < 0 or cpu < 0 or memory < 0 or not model_ok:
            raise OverfullError(f"{pod.name} does not fit on {node}, GPUs {list(gpus)}: {free}")
        if len(set(gpus)) != pod.gpus:
            raise OverfullError(f"{pod.name} wants {pod.gpus} GPUs and got {list(gpus)}")
        free = FreeNode(cpu, tuple(milli), free.model)
        self._free[node] = (free, memory)
        part = self._part(free)
        self.fragmented += part - self._parts[node]
        self._parts[node] = part
        self.allocated += pod.demand

    def free(self) -> list[FreeNode]:
        """Return what each node has left, in the order of the nodes."""
        return [free for free, _ in self._free.values()]

    def _part(self, free: FreeNode) -> float:
        state = FreeNode(free.cpu_milli, tuple(sorted(free.gpu_milli)), free.model)
        part = self._known.get(state)
        if part is None:
            part = self._known[state] = node_fragmentation(state, self._workload)
        return part

"""GpuAllocation: nodes by how many of their GPUs are in use, before cores and memory count.

It is to GPUs what `NodeResourcesFit` is to cores and memory: `MostAllocated` keeps GPUs and nodes
free, `LeastAllocated` keeps pods apart.
"""

from collections.abc import Callable
from typing import Literal

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.arguments import Arguments
from alnair.scheduler.framework.extension_points import Score
from alnair.scheduler.plugins.gpu_allocation.packing import (
    NodesInUse,
    PackedGpus,
    PackedWithoutGpus,
)
from alnair.scheduler.plugins.gpu_allocation.spreading import EmptiestGpu, SpreadGpus
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows


class GpuAllocationArguments(Arguments, frozen=True):
    """Arguments of GpuAllocation.

    Attributes:
        type: `MostAllocated` fills GPUs and nodes in use before it opens others, and keeps pods
            without GPUs off nodes with free ones. `LeastAllocated` goes to the node, and for a
            slice to the GPU, of which the smallest part is in use, half as booked and half as
            measured where it is; pods without GPUs are not scored.
        tie_breakers: score plugins that only decide where this one finds nodes alike.
        smallest_first: of idle nodes the one with the fewest GPUs is opened first; otherwise they
            are opened in the order that breaks ties. Small nodes are often those with the models
            that few nodes have, and pods that ask for these would find them taken.
    """

    type: Literal["MostAllocated", "LeastAllocated"] = "MostAllocated"
    tie_breakers: tuple[str, ...] = ()
    smallest_first: bool = False


class GpuAllocation:
    """Scores nodes by their GPUs, and for `LeastAllocated` GPUs, too."""

    name = "GpuAllocation"
    Args = GpuAllocationArguments
    fine = True
    most = 64

    def __init__(self, arguments: GpuAllocationArguments | None = None) -> None:
        self._arguments = arguments = arguments or GpuAllocationArguments()
        self._packs = arguments.type == "MostAllocated"
        self.tie_breakers = arguments.tie_breakers
        self.reads_loads = not self._packs
        self._nodes: NodesInUse | None = None

    def score(self, spec: PodSpec, cluster: Cluster) -> Score | None:
        """Compile the score."""
        if not any(cluster.devices.there):
            return None  # this is asked again when the first GPU comes
        if not self._packs:
            return SpreadGpus(spec.gpu, cluster) if spec.gpu else None
        if self._nodes is None or self._nodes.cluster is not cluster:
            smallest_first = self._arguments.smallest_first
            self._nodes = NodesInUse(cluster, smallest_first=smallest_first)
        if spec.gpu is None:
            return PackedWithoutGpus(self._nodes)
        return PackedGpus(spec.gpu, cluster.devices, self._nodes)

    def gpus(self, spec: PodSpec, cluster: Cluster) -> Callable[[Rows], Column] | None:
        """Compile the scores of GPUs: how little of each is in use."""
        shares = spec.gpu is not None and bool(spec.gpu.memory_mib)
        return None if self._packs or not shares else EmptiestGpu(cluster)

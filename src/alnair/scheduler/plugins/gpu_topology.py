"""GpuTopology: pods with several GPUs go where a better-connected set of them is free."""

import numpy as np

from alnair.model.workload import GpuDemand, PodSpec
from alnair.scheduler.framework.arguments import Arguments
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import Devices
from alnair.scheduler.state.gpus.gpu_links import MOST_GPUS, NVLINK, Cliques
from alnair.scheduler.state.gpus.gpu_room import accepted
from alnair.scheduler.state.nodes.columns import Column, Rows


class GpuTopologyArguments(Arguments, frozen=True):
    """Arguments of GpuTopology.

    Attributes:
        nvlink_only: PCIe scores 0, whichever way: an idle node is opened for NVLinks alone.
    """

    nvlink_only: bool = False


class GpuTopology:
    """Scores nodes by the weakest link of the best set of GPUs that they have free.

    NVLinks score 60-100, PCIe 10-50, and nodes that say nothing of links 0. Pods with one GPU or
    none are not scored.
    """

    name = "GpuTopology"
    Args = GpuTopologyArguments

    def __init__(self, arguments: GpuTopologyArguments | None = None) -> None:
        self._least = NVLINK if (arguments or GpuTopologyArguments()).nvlink_only else 0

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Connected | None":
        """Compile the score."""
        several = spec.gpu is not None and spec.gpu.whole > 1
        return _Connected(spec.gpu, cluster.devices, self._least) if several and spec.gpu else None


class _Connected:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, demand: GpuDemand, devices: Devices, least: int) -> None:
        self._demand = demand
        self._devices = devices
        self._least = least

    def __call__(self, rows: Rows) -> Column:
        devices = self._devices
        free = devices.free_mask(rows)[:MOST_GPUS]
        if self._demand.restricts_models:
            free &= accepted(self._demand, devices, rows)[:MOST_GPUS]
        masks = (1 << np.arange(len(free))) @ free
        wirings: list[Cliques | None] = list(devices.wirings)
        if masks.size == 1:  # a node where something was booked
            wired = wirings[int(devices.wiring[rows][0])]
            return np.array([self._quality(wired, int(masks[0]))])
        # Machines of one type with the same GPUs free are alike, and a cluster has few types.
        wiring = devices.wiring[rows].astype(np.int64)
        kinds, which = np.unique((wiring << MOST_GPUS) + masks, return_inverse=True)
        scores = [
            self._quality(wirings[kind >> MOST_GPUS], kind & (1 << MOST_GPUS) - 1)
            for kind in kinds.tolist()
        ]
        found: Column = np.array(scores)[which]
        return found

    def _quality(self, wired: Cliques | None, free: int) -> float:
        found = wired.quality(free, self._demand.whole) if wired else 0
        return float(found) if found >= self._least else 0.0

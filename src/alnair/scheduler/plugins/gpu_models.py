"""GpuModels: pods go to nodes with the GPU models that they like best."""

import numpy as np

from alnair.model.workload import GpuDemand, PodSpec
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import Devices
from alnair.scheduler.state.gpus.gpu_room import accepted, slice_fits
from alnair.scheduler.state.nodes.columns import Column, Rows


class GpuModels:
    """Scores nodes by the weight that the pod gives the model of the GPUs it would get there.

    Of several models on a node the pod gets the heaviest that are enough, so the lightest of those
    is what counts.
    """

    name = "GpuModels"

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Liked | None":
        """Compile the score."""
        return _Liked(spec.gpu, cluster.devices) if spec.gpu and spec.gpu.weights else None


class _Liked:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, demand: GpuDemand, devices: Devices) -> None:
        self._demand = demand
        self._devices = devices

    def __call__(self, rows: Rows) -> Column:
        demand, devices = self._demand, self._devices
        weights = np.zeros(len(devices.models) + 1)  # the last one: no GPU
        for model, weight in demand.weights:
            if model in devices.models:
                weights[devices.models[model]] = weight
        usable = devices.free_mask(rows) & accepted(demand, devices, rows)
        if not demand.whole:
            usable = slice_fits(demand, devices, rows)
        weighted = np.where(usable, weights[devices.model[:, rows]], 0.0)
        wanted = max(demand.whole, 1)
        if len(weighted) < wanted:
            return np.zeros(weighted.shape[1])
        least: Column = np.sort(weighted, axis=0)[-wanted]
        return least

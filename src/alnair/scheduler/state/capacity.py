"""How many pods of a class each node could take: an upper bound from resources and GPUs alone."""

import numpy as np
from numpy.typing import NDArray

from alnair.model.workload import GpuDemand, PodSpec
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.gpus.devices import Devices
from alnair.scheduler.state.nodes.columns import Column


def capacity(spec: PodSpec, cluster: Cluster, rows: NDArray[np.intp]) -> Column:
    """Return how many pods of the class fit on each of the rows, at most; whole numbers.

    Exact for resources, whole GPUs, and slices without whole GPUs beside them. What plugins refuse
    besides (ports, anti-affinity) can only make it less.
    """
    free = cluster.columns.free
    most: Column = np.full(rows.size, np.inf)
    for name, amount in spec.requests:
        there = free[cluster.columns.resource(name), rows]
        np.minimum(most, np.floor(there / float(amount)), out=most)
    if spec.gpu is not None:
        np.minimum(most, _by_gpus(spec.gpu, cluster.devices, rows), out=most)
    return np.maximum(most, 0.0, out=most)


def _by_gpus(demand: GpuDemand, devices: Devices, rows: NDArray[np.intp]) -> Column:
    models = devices.model[:, rows]
    accepted = models >= 0
    if demand.models:
        known = [devices.models[m] for m in demand.models if m in devices.models]
        accepted = np.isin(models, known)
    most: Column = np.full(rows.size, np.inf)
    if demand.whole:
        free = devices.free_mask(rows) & accepted
        most = np.floor(free.sum(axis=0) / demand.whole)
    if demand.memory_mib:
        slices = np.floor(devices.slice_memory[:, rows] / demand.memory_mib)
        if demand.compute:
            by_compute = np.floor(devices.compute_free[:, rows] / demand.compute)
            slices = np.minimum(slices, by_compute)
            if not demand.soft:
                by_limits = np.floor(devices.hard_free[:, rows] / demand.compute)
                slices = np.minimum(slices, by_limits)
        slices = np.where(accepted, np.maximum(slices, 0.0), 0.0)
        most = np.minimum(most, slices.sum(axis=0))
    return most

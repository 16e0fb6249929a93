"""Which labels, values, GPU models and resources nodes have, for advice: nothing is kept of it."""

from collections import Counter

import numpy as np

from alnair.model import names
from alnair.model.workload import PodSpec, Requirement
from alnair.scheduler.framework.allocation_scores import is_extended
from alnair.scheduler.framework.node_selectors import label_mask
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.labels import ABSENT


def label_values(key: str, cluster: Cluster) -> Counter[str]:
    """Return the values of a label, and how many nodes have each."""
    columns = cluster.columns
    there = columns.labels.column(key)[columns.alive]
    counts = np.bincount(there[there != ABSENT])
    values = columns.labels.values(key)
    return Counter({values[i]: int(counts[i]) for i in np.flatnonzero(counts)})


def gpu_models(cluster: Cluster) -> Counter[str]:
    """Return the models of GPUs, and how many nodes have each."""
    found: Counter[str] = Counter()
    for node, gpus in zip(cluster.columns.nodes, cluster.devices.gpus, strict=False):
        if node:
            found.update({gpu.model for gpu in gpus})
    return found


def is_met(requirement: Requirement, cluster: Cluster) -> bool:
    """Return whether any node satisfies a well-formed requirement on a label."""
    columns = cluster.columns
    rows = slice(0, columns.n)
    return bool((label_mask(requirement, columns, rows) & columns.alive[rows]).any())


def offered_resources(cluster: Cluster) -> frozenset[str]:
    """Return what people may ask for: resources that any node has to give, free or not."""
    columns = cluster.columns
    return frozenset(
        name
        for name, column in columns.resources.items()
        if name != names.VGPU and columns.allocatable[column].any()
    )


def unoffered_resources(spec: PodSpec, cluster: Cluster) -> list[str]:
    """Return the resources that a pod requests, none of Kubernetes' own, and no node has at all."""
    columns = cluster.columns
    return [
        name
        for name, amount in spec.requests
        if amount
        and is_extended(name)
        and (
            (at := columns.resources.get(name)) is None
            or not np.count_nonzero(columns.allocatable[at])
        )
    ]

"""NodeResourcesFit: enough of every requested resource; scores by what is left or used.

Source of semantics: `pkg/scheduler/framework/plugins/noderesources` of Kubernetes.
"""

from collections.abc import Iterable
from typing import Literal

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.columns import Column, Mask, Rows
from alnair.scheduler.framework import Cluster, Depends, Normalize, Reason

Strategy = Literal["LeastAllocated", "MostAllocated"]


class NodeResourcesFit:
    """Filters by free resources, and scores cpu and memory."""

    name = "NodeResourcesFit"

    def __init__(self, strategy: Strategy = "LeastAllocated") -> None:
        self.strategy = strategy

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Fit | None":
        """Compile the filter."""
        return _Fit(spec, cluster) if spec.requests else None

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Allocation":
        """Compile the score."""
        return _Allocation(spec, cluster, self.strategy)


class _Fit:
    depends = Depends.BOOKED

    def __init__(self, spec: PodSpec, cluster: Cluster) -> None:
        self._columns = cluster.columns
        # The rarest resources first would be faster still, but the order of reasons follows this
        # one.
        self._wanted = [
            (self._columns.resource(name), float(amount)) for name, amount in spec.requests
        ]
        self._names = [name for name, _ in spec.requests]

    def __call__(self, rows: Rows) -> Mask:
        free = self._columns.free
        (column, amount), *others = self._wanted
        ok: Mask = free[column, rows] >= amount
        for column, amount in others:
            ok &= free[column, rows] >= amount
        return ok

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        free, allocatable = self._columns.free, self._columns.allocatable
        for name, (column, amount) in zip(self._names, self._wanted, strict=True):
            lacking = free[column, rows] < amount
            never = allocatable[column, rows] < amount
            text = "Too many pods" if name == "pods" else f"Insufficient {name}"
            yield Reason(text), lacking & ~never
            yield Reason(text, unresolvable=name != "pods"), never


class _Allocation:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, spec: PodSpec, cluster: Cluster, strategy: Strategy) -> None:
        self._columns = cluster.columns
        self._requested = (float(spec.scored_cpu), float(spec.scored_memory))
        self._least = strategy == "LeastAllocated"

    def __call__(self, rows: Rows) -> Column:
        cpu, cpu_there = self._part(0, rows)
        memory, memory_there = self._part(1, rows)
        # A resource that the node has nothing of does not count.
        score: Column = np.floor((cpu + memory) / np.maximum(cpu_there * 1.0 + memory_there, 1.0))
        return score

    def _part(self, resource: int, rows: Rows) -> tuple[Column, Mask]:
        capacity = self._columns.allocatable[resource, rows]  # columns 0 and 1 are cpu and memory
        used = self._columns.scored[resource, rows] + self._requested[resource]
        # What scoring assumes of silent containers may exceed the node: that is a full node.
        used = np.minimum(used, capacity)
        wanted = capacity - used if self._least else used
        return np.floor(wanted * 100.0 / np.maximum(capacity, 1.0)), capacity > 0

"""How full a node would be, as a score: the strategies of NodeResourcesFit.

Source of formulas: `pkg/scheduler/framework/plugins/noderesources` of Kubernetes 1.36
(`resource_allocation.go` and the three scorers).
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.arguments import Arguments, out_of_range
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Columns, Mask, Rows

Strategy = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]
#: Scores of a shape are 0-10 in files, and 0-100 for the scheduler.
_SHAPE_SCALE: Final = 10


class ResourceWeight(Arguments, frozen=True):
    """A resource that counts, and how much it does."""

    name: str
    weight: int = 1


class ShapePoint(Arguments, frozen=True):
    """The score (0-10) that a resource gets at a utilisation (percent)."""

    utilization: int
    score: int


class RequestedToCapacityRatio(Arguments, frozen=True):
    """Points of the broken line from utilisation to score, by growing utilisation."""

    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(Arguments, frozen=True):
    """Which nodes score high: those with much left, with little, or as a shape says."""

    type: Strategy = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = (ResourceWeight("cpu"), ResourceWeight("memory"))
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None

    def problems(self) -> list[str]:
        """Return what is out of range."""
        found = []
        for i, resource in enumerate(self.resources):
            found += out_of_range(f"scoringStrategy.resources[{i}].weight", resource.weight, 1, 100)
        ratio, path = self.requested_to_capacity_ratio, "scoringStrategy.requestedToCapacityRatio"
        if self.type != "RequestedToCapacityRatio":
            if ratio is not None:
                found.append(f"{path}: leave it out unless type is RequestedToCapacityRatio")
        elif ratio is None or not ratio.shape:
            found.append(f"{path}.shape: give at least one point {{utilization, score}}")
        else:
            found += _shape_problems(ratio.shape, f"{path}.shape")
        return found


def _shape_problems(shape: Sequence[ShapePoint], path: str) -> list[str]:
    found = []
    for i, point in enumerate(shape):
        found += out_of_range(f"{path}[{i}].utilization", point.utilization, 0, 100)
        found += out_of_range(f"{path}[{i}].score", point.score, 0, 10)
        if i and shape[i - 1].utilization >= point.utilization:
            found.append(f"{path}[{i}].utilization: write the points by growing utilization")
    return found


def is_scalar(resource: str) -> bool:
    """Return whether a resource counts only for pods that ask for it."""
    return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


def is_extended(resource: str) -> bool:
    """Return whether a resource is none of Kubernetes' own."""
    return "/" in resource and "kubernetes.io/" not in resource


class Part:
    """One resource that a pod is scored by: what is used, what there is, what the pod adds.

    Args:
        name: of the resource.
        spec: of the pod.
        columns: of the nodes.
        assumed: count what scoring assumes of containers that request no cpu or memory.
    """

    def __init__(self, name: str, spec: PodSpec, columns: Columns, *, assumed: bool) -> None:
        self.requested = float(dict(spec.requests).get(name, 0))
        self.column = columns.resource(name)
        self._columns = columns
        self._scored = -1
        if assumed and name in ("cpu", "memory"):
            self._scored = self.column  # the first two columns are these
            self.requested = float(spec.scored_memory if self._scored else spec.scored_cpu)

    def capacity(self, rows: Rows) -> Column:
        """Return what each row has in all."""
        found: Column = self._columns.allocatable[self.column, rows]
        return found

    def used(self, rows: Rows) -> Column:
        """Return what the pods of each row hold."""
        if self._scored >= 0:
            scored: Column = self._columns.scored[self._scored, rows]
            return scored
        held: Column = self.capacity(rows) - self._columns.free[self.column, rows]
        return held


def counts(name: str, spec: PodSpec) -> bool:
    """Return whether scoring looks at the resource for this pod."""
    if is_scalar(name):
        return bool(dict(spec.requests).get(name))
    return name in ("cpu", "memory", "ephemeral-storage")


def parts(
    names: Sequence[str], spec: PodSpec, columns: Columns, *, assumed: bool
) -> list[Part | None]:
    """Return the part of each resource, None for those that do not count for the pod."""
    return [
        Part(name, spec, columns, assumed=assumed) if counts(name, spec) else None for name in names
    ]


class Allocation:
    """Scores rows by a strategy over any resources."""

    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, spec: PodSpec, cluster: Cluster, strategy: ScoringStrategy) -> None:
        self._columns = cluster.columns
        names = [r.name for r in strategy.resources]
        found = parts(names, spec, cluster.columns, assumed=True)
        self._parts = [
            (part, float(r.weight))
            for part, r in zip(found, strategy.resources, strict=True)
            if part
        ]
        ratio = strategy.requested_to_capacity_ratio
        self._shape = _table(ratio.shape) if ratio else None
        self._one: Callable[[Column, Column], Column] = {
            "LeastAllocated": _least,
            "MostAllocated": _most,
            "RequestedToCapacityRatio": self._by_shape,
        }[strategy.type]

    def __call__(self, rows: Rows) -> Column:
        """Return 0-100 for each row."""
        total: Column = np.zeros(self._columns.alive[rows].size)
        weights: Column = np.zeros_like(total)
        for part, weight in self._parts:
            capacity = part.capacity(rows)
            counted: Mask = capacity > 0  # what the node has nothing of does not count
            used = np.minimum(part.used(rows) + part.requested, capacity)
            score = self._one(used, np.maximum(capacity, 1.0)) * counted
            if self._shape is not None:
                counted = score > 0
            total += score * weight
            weights += counted * weight
        mean = total / np.maximum(weights, 1.0)
        return np.floor(mean + 0.5) if self._shape is not None else np.floor(mean)

    def _by_shape(self, used: Column, capacity: Column) -> Column:
        assert self._shape is not None
        scores: Column = self._shape[(used * 100.0 // capacity).astype(np.intp)]
        return scores


def _least(used: Column, capacity: Column) -> Column:
    return np.floor((capacity - used) * 100.0 / capacity)


def _most(used: Column, capacity: Column) -> Column:
    return np.floor(used * 100.0 / capacity)


def _table(shape: Sequence[ShapePoint]) -> Column:
    """Return the score at each whole percent of utilisation, 0 to 100, shape (101,)."""
    table = []
    for percent in range(101):
        after = next((i for i, p in enumerate(shape) if percent <= p.utilization), len(shape))
        if after in (0, len(shape)):
            table.append(shape[min(after, len(shape) - 1)].score * _SHAPE_SCALE)
            continue
        low, high = shape[after - 1], shape[after]
        rise = (high.score - low.score) * _SHAPE_SCALE * (percent - low.utilization)
        # Integers as Go divides them: towards zero.
        step = int(rise / (high.utilization - low.utilization))
        table.append(low.score * _SHAPE_SCALE + step)
    return np.array(table, float)

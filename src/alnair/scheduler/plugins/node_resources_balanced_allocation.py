"""NodeResourcesBalancedAllocation: nodes whose resources would be used more evenly.

Source of formulas: `pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go` of
Kubernetes 1.36. Evenness is 100 less the standard deviation, in percent, of the used parts of the
resources (50-100); the score says how the pod changes it: 75 not at all, up to 100 for the better,
down to 50 for the worse.
"""

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.allocation_scores import Part, ResourceWeight, parts
from alnair.scheduler.framework.arguments import Arguments
from alnair.scheduler.framework.extension_points import Depends, Normalize, Refusal
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows


class BalancedArguments(Arguments, frozen=True):
    """Arguments of NodeResourcesBalancedAllocation: the resources; their weight is always 1."""

    resources: tuple[ResourceWeight, ...] = (ResourceWeight("cpu"), ResourceWeight("memory"))

    def problems(self) -> list[str]:
        """Return what is out of range."""
        found = []
        for i, resource in enumerate(self.resources):
            if resource.weight != 1:
                found.append(f"resources[{i}].weight: {resource.weight} must be 1")
            if resource.name in {r.name for r in self.resources[:i]}:
                found.append(f"resources[{i}].name: {resource.name} occurs twice, leave one")
        return found


class NodeResourcesBalancedAllocation:
    """Scores by what the pod does to the evenness of use."""

    name = "NodeResourcesBalancedAllocation"
    Args = BalancedArguments

    def __init__(self, arguments: BalancedArguments | None = None) -> None:
        self._names = [r.name for r in (arguments or BalancedArguments()).resources]

    def pre_score(self, spec: PodSpec) -> Refusal | None:
        """Refuse to score by no resources at all."""
        return None if self._names else Refusal(self.name, "resources not found")

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Balance | None":
        """Compile the score."""
        requests = dict(spec.requests)
        if not any(requests.get(name) for name in self._names):
            return None
        counted = parts(self._names, spec, cluster.columns, assumed=False)
        return _Balance([part for part in counted if part], cluster)


class _Balance:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, counted: list[Part], cluster: Cluster) -> None:
        self._parts = counted
        self._columns = cluster.columns

    def __call__(self, rows: Rows) -> Column:
        shape = (len(self._parts), self._columns.alive[rows].size)
        before, after, there = np.empty(shape), np.empty(shape), np.empty(shape, bool)
        for i, part in enumerate(self._parts):
            capacity = part.capacity(rows)
            used = part.used(rows)
            there[i] = capacity > 0
            capacity = np.maximum(capacity, 1.0)
            before[i] = np.minimum(used / capacity, 1.0)
            after[i] = np.minimum((used + part.requested) / capacity, 1.0)
        change = _evenness(after, there) - _evenness(before, there)
        # Go divides integers towards zero; the dividend is never negative.
        score: Column = 50.0 + (50.0 + change) // 2
        return score


def _evenness(fractions: Column, there: Column) -> Column:
    """Return 100 less the standard deviation in percent, in integers.

    Args:
        fractions: (resources, rows), 0-1.
        there: (resources, rows), False where the node has nothing of a resource.
    """
    counts = there.sum(axis=0)
    two = (
        np.where(there, fractions, -np.inf).max(axis=0, initial=-np.inf)
        - np.where(there, fractions, np.inf).min(axis=0, initial=np.inf)
    ) / 2
    deviation = np.where(counts == 2, two, 0.0)
    if (counts > 2).any():
        kept = np.where(there, fractions, 0.0)
        mean = kept.sum(axis=0) / np.maximum(counts, 1)
        squares = np.where(there, (kept - mean) ** 2, 0.0).sum(axis=0)
        deviation = np.where(counts > 2, np.sqrt(squares / np.maximum(counts, 1)), deviation)
    return np.floor((1 - deviation) * 100.0)

"""NodeResourceTopologyMatch: pods fit into NUMA zones where kubelets insist on that.

Source of semantics: `pkg/noderesourcetopology` of scheduler-plugins. Only nodes with the policy
single-numa-node refuse; nodes that nobody reports on pass, and score 0.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.allocation_scores import ResourceWeight
from alnair.scheduler.framework.arguments import Arguments, out_of_range
from alnair.scheduler.framework.extension_points import Depends, Normalize, Reason
from alnair.scheduler.plugins.node_resource_topology_match.zone_scores import (
    Scorer,
    Strategy,
    part_scorer,
)
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows
from alnair.scheduler.state.numa.numa_alignment import Alignment, Picked
from alnair.scheduler.state.numa.numa_zones import Zones

NO_CONTAINER: Final = Reason("cannot align container")
NO_INIT: Final = Reason("cannot align init container")
NO_POD: Final = Reason("cannot align pod")
UNREADABLE: Final = Reason("invalid node topology data")


class ZoneScoring(Arguments, frozen=True):
    """Which nodes score high; resources that are not listed weigh 1."""

    type: Strategy = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = ()


class TopologyMatchArguments(Arguments, frozen=True):
    """Arguments of NodeResourceTopologyMatch.

    Attributes:
        scoring_strategy: LeastAllocated, MostAllocated and BalancedAllocation look at what is left
            or used of single zones, and how evenly; LeastNUMANodes prefers, under any policy, nodes
            where fewer zones will do.
    """

    scoring_strategy: ZoneScoring = ZoneScoring()

    def problems(self) -> list[str]:
        """Return what is out of range."""
        return [
            problem
            for i, resource in enumerate(self.scoring_strategy.resources)
            for problem in out_of_range(
                f"scoringStrategy.resources[{i}].weight", resource.weight, 1, 100
            )
        ]


class NodeResourceTopologyMatch:
    """Filters by single NUMA zones, and scores zones."""

    name = "NodeResourceTopologyMatch"
    Args = TopologyMatchArguments

    def __init__(self, arguments: TopologyMatchArguments | None = None) -> None:
        scoring = (arguments or TopologyMatchArguments()).scoring_strategy
        self._strategy = scoring.type
        self._weights = {r.name: r.weight for r in scoring.resources}

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Aligned | None":
        """Compile the filter: nothing while no node reports zones."""
        if not cluster.zones.any:
            return None
        alignment = Alignment(spec, cluster.zones, cluster.columns)
        return None if alignment.trivial else _Aligned(alignment, cluster)

    def score(self, spec: PodSpec, cluster: Cluster) -> "_ZoneScore | _Same | None":
        """Compile the score; others than Guaranteed pods are equally well off anywhere."""
        if not cluster.zones.any:
            return None
        if not spec.guaranteed:
            return _Same()
        alignment = Alignment(spec, cluster.zones, cluster.columns)
        scorer = part_scorer(self._strategy, cluster.zones, self._weights)
        anywhere = self._strategy == "LeastNUMANodes"
        return _ZoneScore(alignment, cluster.zones, scorer, anywhere=anywhere)


class _Aligned:
    depends = Depends.BOOKED

    def __init__(self, alignment: Alignment, cluster: Cluster) -> None:
        self._alignment = alignment
        self._zones = cluster.zones
        self._columns = cluster.columns

    def __call__(self, rows: Rows) -> Mask:
        zones = self._zones
        ok = ~zones.unreadable[rows]
        for here, picked in _scopes(zones, zones.aligned, rows, self._columns.n):
            if zones.pod_scope[picked[0]]:
                ok[here] &= self._alignment.pod_fits(picked)
            else:
                init_ok, containers_ok = self._alignment.containers_fit(picked)
                ok[here] &= init_ok & containers_ok
        return ok

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        zones = self._zones
        unreadable = zones.unreadable[rows]
        yield UNREADABLE, unreadable
        for here, picked in _scopes(zones, zones.aligned, rows, self._columns.n):
            if zones.pod_scope[picked[0]]:
                refused = [(NO_POD, ~self._alignment.pod_fits(picked))]
            else:
                init_ok, ok = self._alignment.containers_fit(picked)
                refused = [(NO_INIT, ~init_ok), (NO_CONTAINER, init_ok & ~ok)]
            for reason, mask in refused:
                found = np.zeros_like(unreadable)
                found[here] = mask & ~unreadable[here]
                yield reason, found


class _ZoneScore:
    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(
        self, alignment: Alignment, zones: Zones, scorer: Scorer, *, anywhere: bool
    ) -> None:
        self._alignment = alignment
        self._zones = zones
        self._scorer = scorer
        self._anywhere = anywhere

    def __call__(self, rows: Rows) -> Column:
        zones = self._zones
        scores = np.zeros(zones.known[rows].size)
        scored = zones.known if self._anywhere else zones.aligned
        for here, picked in _scopes(zones, scored & ~zones.unreadable, rows, zones.known.size):
            pod = bool(zones.pod_scope[picked[0]])
            parts = (self._alignment.pod,) if pod else self._alignment.parts
            scores[here] = self._scorer(parts, picked)
        return scores


class _Same:
    depends = Depends.NODE
    normalize: Normalize | None = None

    def __call__(self, rows: Rows) -> Column:
        size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        return np.full(size, 100.0)


def _scopes(zones: Zones, which: Mask, rows: Rows, count: int) -> Iterable[tuple[Picked, Picked]]:
    """Return the marked rows by scope: positions in `rows`, and the rows themselves."""
    marked = which[rows]
    if not marked.any():
        return
    numbers = np.arange(*rows.indices(count)) if isinstance(rows, slice) else rows
    pods = zones.pod_scope[rows]
    for here in (np.flatnonzero(marked & pods), np.flatnonzero(marked & ~pods)):
        if len(here):
            yield here, numbers[here]

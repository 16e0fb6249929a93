"""FGD: the node and GPU where fragmentation grows the least (Weng et al., USENIX ATC'23)."""

from collections.abc import Callable, Sequence

import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.published.fragmentation import WorkloadClass
from alnair.scheduler.published.fragmentation_table import Index
from alnair.scheduler.published.free_resources import Ask
from alnair.scheduler.published.node_fragmentation import Strands
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.changed_rows import Renewal
from alnair.scheduler.state.nodes.columns import Column, Rows, of_rows
from alnair.traces.openb import WHOLE


class PublishedFGD:
    """Scores by how much F of the node falls: 50 = not at all, and integers, so that nodes tie.

    Args:
        workload: that free GPUs should be of use to; in the published protocol that of the whole
            list of pods, known before the first one arrives.
    """

    name = "PublishedFGD"

    def __init__(self, workload: Sequence[WorkloadClass]) -> None:
        self._workload = tuple(workload)
        self._strands: Strands | None = None
        # Classes that differ only in memory or in GPU models have the same scores.
        self._gains: dict[Ask, _Gain] = {}

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Gain":
        """Compile the score."""
        if self._strands is None or not self._strands.covers(cluster):
            self._strands = Strands(self._workload, cluster)
            self._gains.clear()
        ask = Ask.of(spec)
        gain = self._gains.get(ask)
        if gain is None:
            gain = self._gains[ask] = _Gain(ask, cluster, self._strands)
        return gain

    def gpus(self, spec: PodSpec, cluster: Cluster) -> Callable[[Rows], Column] | None:
        """Compile the scores of GPUs; the lowest index of the best ones wins."""
        if spec.gpu is None or spec.gpu.whole:
            return None
        return self.score(spec, cluster).of_gpus


class _Gain:
    """By how much F falls, for all classes with the same ask, kept until the row changes."""

    depends = Depends.BOOKED
    normalize: Normalize | None = None

    def __init__(self, ask: Ask, cluster: Cluster, strands: Strands) -> None:
        self._ask = ask
        self._columns = cluster.columns
        self._strands = strands
        self._renewal = Renewal(cluster.columns)
        self._scores: Column = np.zeros(0)
        self._scale = -1.0 / (WHOLE * max(strands.target.pods, 1))

    def __call__(self, rows: Rows) -> Column:
        stale = self._renewal.due()
        if stale is not None:
            self._strands.refresh()
            if self._scores.size != self._columns.n:
                self._scores = np.zeros(self._columns.n)
            self._scores[stale] = self._score(self._of_nodes(stale))
        return self._scores[rows]

    def of_gpus(self, rows: Rows) -> Column:
        """Return the score of each GPU for the share, 0 where it has no room.

        Among equals the lowest index has the highest score, by less than 1.
        """
        self._strands.refresh()
        gain, after = self._of_shares(rows)
        gain += self._strands.fragmented[rows] - after
        found = self._score(gain)
        found += self._strands.lowest
        return found

    def _of_nodes(self, rows: Rows) -> Column:
        """Return by how much F of each row falls, in the unit of the target."""
        ask, strands = self._ask, self._strands
        gain: Column
        if 0 < ask.milli < WHOLE:
            shares, after = self._of_shares(rows)
            gain = shares.max(axis=0, initial=-np.inf)
            gain -= after
        else:
            state = strands.after(ask.cpu_milli, rows)
            parts = strands.target.parts
            gain = -parts.take(state + of_rows(strands.left, rows)).sum(axis=0)
            gain += ask.gpus * parts.take(state + WHOLE)
            if strands.target.has_several:
                gain += strands.target.useful(state, np.maximum(strands.free[rows] - ask.gpus, 0))
        gain += strands.fragmented[rows]
        return gain if ask.gpus else self._rounded(gain, rows)

    def _rounded(self, gain: Column, rows: Rows) -> Column:
        """Return the gains with those of 0 as the published simulator rounds them."""
        strands, rounding = self._strands, self._strands.rounding
        left: Index = of_rows(strands.left, rows)
        cpu_left = strands.cpu_left(rows)
        before, after = rounding.level(cpu_left), rounding.level(cpu_left - self._ask.cpu_milli)
        model = strands.model[rows]
        for i in np.flatnonzero((gain == 0.0) & (before != after) & left.any(axis=0)).tolist():
            free = tuple(sorted(left[:, i].tolist()))
            one, other = (
                rounding.fragmented(model.item(i), level.item(i), free) for level in (before, after)
            )
            gain[i] = (one - other) * strands.target.pods
        return gain

    def _of_shares(self, rows: Rows) -> tuple[Column, Column]:
        """Return what each GPU's share takes off F, and F of each row before that.

        Returns:
            By how much F falls with the share on each GPU, -inf where it has no room, shape (GPUs
            per node, rows); F of each row (rows,) when only the pod's cores are taken.
        """
        ask, strands = self._ask, self._strands
        target = strands.target
        state = strands.after(ask.cpu_milli, rows)
        left: Index = of_rows(strands.left, rows)
        place = left + state
        parts = target.parts.take(place)
        after = parts.sum(axis=0)
        place -= ask.milli
        gain = parts - target.parts.take(place, mode="clip")
        if target.has_several:
            free = strands.free[rows]
            useful = target.useful(state, free)
            after -= useful
            opened = useful - target.useful(state, np.maximum(free - 1, 0))
            gain -= np.where(left == WHOLE, opened, 0.0)
        gain[left < ask.milli] = -np.inf
        return gain, after

    def _score(self, gain: Column) -> Column:
        score: Column = np.floor(100.0 / (1.0 + np.exp(gain * self._scale)))
        return score

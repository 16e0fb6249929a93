"""Filters and scores of one pod class over all nodes, kept current from dirty rows.

Choosing a node for a pod of a class seen before costs the recomputation of the rows that changed
since, and one argmax.
"""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from alnair.model import names
from alnair.model.near_names import near
from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import (
    Depends,
    Filter,
    PodsFilter,
    PodsScore,
    Profile,
    Reason,
    Refusal,
    Score,
)
from alnair.scheduler.framework.known_labels import offered_resources, unoffered_resources
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import TIES, Column, Mask, Rows, distinct, single

#: Rank of a row that will not do; feasible rows rank 0 and above.
INFEASIBLE = -1.0


class Evaluation:
    """One class under one profile.

    Attributes:
        refusal: why the class is refused as such, or None.
        compares_requests: whether a filter compares requests with what is free.
        unit: what a point of the score is in the rank.
        rank: (rows,), score and tie-break in one number, `INFEASIBLE` where a filter refused.
    """

    def __init__(self, spec: PodSpec, profile: Profile, cluster: Cluster) -> None:
        self.spec = spec
        self._profile = profile
        self.refusal = _refusal(spec, profile)
        self._cluster = cluster
        self.compares_requests = False
        self._filters: list[tuple[str, Filter | PodsFilter]] = []
        self._scores: list[tuple[float, Score | PodsScore]] = []
        self.unit = float(TIES)
        self._objects_read = [
            (kind, cluster.objects.version(kind))
            for plugin in profile.readers
            for kind in plugin.kinds(spec)
        ]
        self._named_read = [
            (read, cluster.objects.state(read))
            for named in profile.name_readers
            for read in named.reads(spec, cluster.objects)
        ]
        self._learned_read = [
            (p.name, cluster.observations.version(p.name)) for p in profile.observers
        ]
        #: After how many changes it was not outdated yet: most often there were none since.
        self._valid_at = cluster.objects.changes, cluster.observations.changes
        if self.refusal is None:
            for plugin in profile.filters:
                if f := plugin.filter(spec, cluster):
                    self._filters.append((plugin.name, f))
                    self.compares_requests |= getattr(plugin, "compares_requests", False)
            scores = [(p, s) for p in profile.scores if (s := p.score(spec, cluster))]
            silent = frozenset(n for _, s in scores for n in getattr(s, "instead_of", ()))
            weights, self.unit = profile.weigh([p for p, _ in scores], silent)
            pairs = zip(weights, scores, strict=True)
            self._scores = [(w, s) for w, (_, s) in pairs if w]
        self._node_filters = [f for _, f in self._filters if f.depends is Depends.NODE]
        self._booked_filters = [f for _, f in self._filters if f.depends is Depends.BOOKED]
        self._changing_filters = [f for _, f in self._filters if f.depends is not Depends.NODE]
        # Asking a protocol would be slow: `depends` says what kind a function is.
        self._pods_filters = [
            cast("PodsFilter", f) for _, f in self._filters if f.depends is Depends.PODS
        ]
        own = [(w, cast("Score", s)) for w, s in self._scores if s.depends is not Depends.PODS]
        self._plain_scores = [(w, s) for w, s in own if s.normalize is None]
        self._normalized = [(w, s) for w, s in own if s.normalize is not None]
        self._pods_scores = [
            (w, cast("PodsScore", s)) for w, s in self._scores if s.depends is Depends.PODS
        ]
        #: Rank is the work of each row alone; otherwise parts are kept and put together.
        self._simple = not (self._pods_filters or self._normalized or self._pods_scores)
        self.rank: Column = np.zeros(0)
        self._static: Mask = np.zeros(0, bool)
        self._own: Mask = np.zeros(0, bool)
        self._plain: Column = np.zeros(0)
        self._raw: list[Column] = []
        self._pods: list[Mask] = []
        self._versions: list[int] = []
        self._epoch = -1
        self._nodes_read = 0
        self._booked_read = 0
        self._refusals: tuple[int, list[tuple[str, Reason, int]]] | None = None
        #: What `refusals` was counted from: the ends of the logs.
        self._counted: tuple[int, int] = (-1, -1)
        #: A row was taken out by `bar` since everything was last computed.
        self._barred = False
        self._filters_read: tuple[list[str], list[str]] | None = None

    def outdated(self) -> bool:
        """Return whether objects, or what plugins learned, changed since they were compiled."""
        objects, observations = self._cluster.objects, self._cluster.observations
        now = objects.changes, observations.changes
        if now == self._valid_at:
            return False
        outdated = (
            any(objects.version(kind) != v for kind, v in self._objects_read)
            or any(objects.state(read) != state for read, state in self._named_read)
            or any(observations.version(name) != v for name, v in self._learned_read)
        )
        if not outdated:
            self._valid_at = now
        return outdated

    def filters_read(self) -> tuple[list[str], list[str]] | None:
        """Return the kinds of objects, and the plugins whose observations, filters depend on.

        None if they depend on certain objects of kinds that change all the time. A plugin without a
        filter for this class passes all nodes: whatever it learns, nobody gets in who was refused.
        """
        if self._named_read:
            return None
        if self._filters_read is None:
            filters = {name for name, _ in self._filters}
            readers = (p for p in self._profile.readers if p.name in filters)
            kinds = [kind for plugin in readers for kind in plugin.kinds(self.spec)]
            observed = [p.name for p in self._profile.observers if p.name in filters]
            self._filters_read = kinds, observed
        return self._filters_read

    def refresh(self) -> None:
        """Bring `rank` up to date."""
        columns = self._cluster.columns
        if self._epoch == columns.epoch:
            nodes = columns.nodes_changed.since(self._nodes_read)
            booked = columns.booked.since(self._booked_read)
        else:
            nodes = booked = None
        self._nodes_read = columns.nodes_changed.end
        self._booked_read = columns.booked.end
        unknown = nodes is None or booked is None
        if not unknown and not nodes and not booked:
            return
        rows = None
        if nodes is not None and booked is not None:
            rows = distinct(nodes + booked, columns.n)
        if rows is None:
            self._epoch = columns.epoch
            self._recompute()
            return
        if nodes:
            self._static[rows] = self._static_filters(rows)
        self._update(rows)

    def best(self, allowed: Mask | NDArray[np.intp] | None = None) -> int | None:
        """Return the row of the best node, or None if none will do; call `refresh` before.

        Args:
            allowed: only these are looked at, as a mask or as rows in ascending order; None for
                all.
        """
        if allowed is None:
            rank = self.rank
        else:
            allowed = np.flatnonzero(allowed) if allowed.dtype == bool else allowed
            rank = self.rank[allowed]
        if not rank.size:
            return None
        at = int(rank.argmax())
        if rank[at] < 0:
            return None
        return at if allowed is None else int(allowed[at])

    def score(self, row: int) -> int:
        """Return the whole points of a feasible row; call `refresh` before."""
        return int(self.rank[row] // self.unit)

    def possible(self) -> Mask:
        """Return which rows will do as far as each alone decides; call `refresh` before.

        Where pods are on other rows does not count: of a gang, that may still change.
        """
        return self.rank >= 0 if self._simple else self._own

    def feasible(self, row: int) -> bool:
        """Return whether the row will do; call `refresh` before."""
        return row < self.rank.size and bool(self.rank[row] >= 0)

    def accepts(self, row: int) -> bool:
        """Ask the filters anew about a row, as the books are at this moment."""
        one = slice(row, row + 1)
        return bool(self._static[row]) and all(f(one)[0] for f in self._changing_filters)

    def accepts_alone(self, row: int) -> bool | None:
        """Return whether the row would do, without `refresh`; None if only that tells."""
        columns = self._cluster.columns
        if (
            not self._simple
            or self._barred
            or self._epoch != columns.epoch
            or self._nodes_read != columns.nodes_changed.end
        ):
            return None
        return self.accepts(row)

    def bar(self, row: int) -> None:
        """Take a row out until it changes: what it holds cannot be given out as filters said."""
        self.rank[row] = INFEASIBLE
        self._barred = True

    def why_not(self, row: int) -> list[Reason]:
        """Return the reasons of the first filter that refuses the row at this moment."""
        one = slice(row, row + 1)
        for _, f in self._filters:
            if not f(one)[0]:
                return [reason for reason, mask in f.reasons(one) if mask[0]]
        return []

    def resolvable(self) -> Mask:
        """Return the rows that are refused for reasons that other pods' leaving may end.

        As in kube-scheduler, the first filter that refuses a row decides.
        """
        rows = slice(0, self._cluster.columns.n)
        left = self._cluster.columns.alive[rows].copy()
        found = np.zeros_like(left)
        for _, f in self._filters:
            passed = f(rows)
            refused = left & ~passed
            if refused.any():
                for reason, mask in f.reasons(rows):
                    if reason.unresolvable:
                        refused &= ~mask
                found |= refused
            left &= passed
        return found

    def refusals(self) -> tuple[int, list[tuple[str, Reason, int]]]:
        """Return the number of nodes, and how many each plugin's reason refused.

        As in kube-scheduler, a node counts for the first plugin that refuses it, and then for each
        of that plugin's reasons.
        """
        columns = self._cluster.columns
        now = columns.nodes_changed.end, columns.booked.end
        if self._refusals is None or self._counted != now:
            self._refusals, self._counted = self._count_refusals(), now
        return self._refusals

    def mistyped(self) -> list[tuple[str, str]]:
        """Return what the class requests under a wrong name, it seems, each with the likest name.

        No node has the one, and some the other.
        """
        return [
            (name, meant)
            for name in unoffered_resources(self.spec, self._cluster)
            # These are right where all agents are down.
            if name not in names.GPU_RESOURCES
            for meant in near(name, offered_resources(self._cluster), 1)
        ]

    def refused_by(self) -> tuple[str, ...]:
        """Return the plugins that refuse the class, or some nodes for it."""
        if self.refusal is not None:
            return (self.refusal.plugin,)
        return tuple(dict.fromkeys(plugin for plugin, _, _ in self.refusals()[1]))

    def _count_refusals(self) -> tuple[int, list[tuple[str, Reason, int]]]:
        columns = self._cluster.columns
        rows = slice(0, columns.n)
        left = columns.alive[rows].copy()
        counts: list[tuple[str, Reason, int]] = []
        remaining = int(np.count_nonzero(left))
        every_node_will_do = self._every_node_will_do(remaining)
        for name, f in self._filters:
            if not remaining:
                break
            if every_node_will_do and f.depends is Depends.NODE:
                continue
            passed = f(rows)
            passed &= left
            passing = int(np.count_nonzero(passed))
            if passing < remaining:  # reasons are dear, and most filters pass all that is left
                counts += [
                    (name, reason, count)
                    for reason, mask in f.reasons(rows)
                    if (count := int(np.count_nonzero(mask & left)))
                ]
            left, remaining = passed, passing
        return len(columns), counts

    def _every_node_will_do(self, nodes: int) -> bool:
        """Return whether filters that read nodes alone are known to pass all of them."""
        columns = self._cluster.columns
        return (
            self._epoch == columns.epoch
            and self._nodes_read == columns.nodes_changed.end
            and int(np.count_nonzero(self._static)) == nodes
        )

    def _recompute(self) -> None:
        n = self._cluster.columns.n
        rows = slice(0, n)
        self._barred = False
        self._static = self._static_filters(rows)
        self.rank = np.empty(n)
        if not self._simple:
            self._own = np.empty(n, bool)
            self._plain = np.empty(n)
            self._raw = [np.empty(n) for _ in self._normalized]
            self._versions = []
        self._update(rows)

    def _static_filters(self, rows: Rows) -> Mask:
        ok = self._cluster.columns.alive[rows].copy()
        for f in self._node_filters:
            ok &= f(rows)
        return ok

    def _update(self, rows: Rows) -> None:
        ok = self._static[rows].copy()
        for f in self._booked_filters:
            ok &= f(rows)
        total: Column | float | None = None
        for weight, score in self._plain_scores:
            # Passes over all rows are dear: none for a weight of 1, or to add to nothing.
            part = score(rows) if weight == 1 else weight * score(rows)
            total = part if total is None else total + part
        if total is None:
            total = 0.0
        tie = self._cluster.columns.tie
        if self._simple:
            self._rank(rows, ok, total, tie)
            return
        self._own[rows] = ok
        self._plain[rows] = total
        for (_, score), raw in zip(self._normalized, self._raw, strict=True):
            raw[rows] = score(rows)
        self._combine(tie)

    def _rank(self, rows: Rows, ok: Mask, total: Column | float, tie: Column) -> None:
        """Put score and tie-break into one number, without arrays that are dropped at once."""
        if (row := single(rows)) is not None:
            score = total if isinstance(total, float) else total.item(0)
            self.rank[row] = score * self.unit + tie.item(row) if ok.item(0) else INFEASIBLE
        elif isinstance(rows, slice):
            rank = self.rank[rows]
            np.multiply(total, self.unit, out=rank)
            rank += tie[rows]
            if not ok.all():
                np.copyto(rank, INFEASIBLE, where=~ok)
        else:
            self.rank[rows] = np.where(ok, total * self.unit + tie[rows], INFEASIBLE)

    def _combine(self, tie: Column) -> None:
        """Put the parts together for all rows: one row may change what others are measured by."""
        feasible = self._own.copy()
        everywhere = slice(0, feasible.size)
        versions = [f.version for f in self._pods_filters]
        if versions != self._versions:
            self._pods = [f(everywhere) for f in self._pods_filters]
            self._versions = versions
        for mask in self._pods:
            feasible &= mask
        ranked = self._plain.copy()
        for (weight, score), raw in zip(self._normalized, self._raw, strict=True):
            assert score.normalize is not None
            ranked += weight * score.normalize(raw, feasible)
        for weight, pods_score in self._pods_scores:
            scores = pods_score.over(feasible)
            if pods_score.normalize is not None:
                scores = pods_score.normalize(scores, feasible)
            ranked += weight * scores
        self.rank = np.where(feasible, ranked * self.unit + tie, INFEASIBLE)


def _refusal(spec: PodSpec, profile: Profile) -> Refusal | None:
    for plugin in profile.pre_filters:
        if refusal := plugin.pre_filter(spec):
            return refusal
    for scorer in profile.pre_scores:
        if refusal := scorer.pre_score(spec):
            return refusal
    return None

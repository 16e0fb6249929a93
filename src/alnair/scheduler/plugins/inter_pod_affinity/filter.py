"""The filter of inter-pod affinity for one pod class."""

from collections.abc import Iterable

import msgspec
import numpy as np

from alnair.model.workload import PodAffinity, PodSpec
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.plugins.inter_pod_affinity.terms import (
    TermsAbout,
    domain_sums,
    includes,
    query,
    query_all,
)
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows

NOT_NEAR = Reason("node(s) didn't match pod affinity rules", unresolvable=True)
NOT_APART = Reason("node(s) didn't match pod anti-affinity rules")
UNWELCOME = Reason("node(s) didn't satisfy existing pods anti-affinity rules")


class AffinityFilter:
    """The pod's required terms, and the required anti-affinity of pods on nodes."""

    depends = Depends.PODS

    def __init__(self, spec: PodSpec, cluster: Cluster) -> None:
        self._cluster = cluster
        affinity = spec.pod_affinity or PodAffinity()
        namespace, objects = spec.namespace, cluster.objects
        self._near_keys = list(dict.fromkeys(t.topology_key for t in affinity.required))
        # A pod must be near pods that *all* of its terms are about.
        self._near = query_all(affinity.required, namespace, objects) if self._near_keys else None
        # Whom room is held for may never come, so each node must do with them and without them.
        self._near_now = self._near and msgspec.structs.replace(self._near, skip_expected=True)
        self._near_itself = self._near is not None and includes(self._near, spec)
        self._apart = list(
            dict.fromkeys(
                (query(t, namespace, objects), t.topology_key) for t in affinity.anti_required
            )
        )
        self._theirs = TermsAbout(spec, cluster, cluster.pods.held("anti_required"))
        self._state: tuple[int, ...] = ()
        self._version = 0
        self._refused: tuple[tuple[Reason, Mask], ...] = ()
        self._ok: Mask = np.zeros(0, bool)

    @property
    def version(self) -> int:
        """A number that changes when rows may be judged otherwise; 0 = all rows will do."""
        theirs = self._theirs.refresh()
        if not (theirs or self._near or self._apart):
            return 0
        columns, pods = self._cluster.columns, self._cluster.pods
        state = (
            theirs,
            columns.epoch,
            columns.nodes_changed.end,
            pods.version_of(self._near) if self._near else 0,
            pods.version_of(self._near_now) if self._near_now else 0,
            *(pods.version_of(asked) for asked, _ in self._apart),
        )
        if state != self._state:
            self._state = state
            self._version += 1
            self._judge()
        return self._version

    def __call__(self, rows: Rows) -> Mask:
        """Return True for each row that will do."""
        if not self.version:
            return np.ones(self._cluster.columns.alive[rows].size, bool)
        return self._ok[rows]

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        """Return each reason and the rows that it refuses, each row for the first one only."""
        if self.version:
            for reason, mask in self._refused:
                yield reason, mask[rows]

    def _judge(self) -> None:
        ok = np.ones(self._cluster.columns.n, bool)
        refused = []
        for reason, bad in (
            (NOT_NEAR, self._not_near()),
            (NOT_APART, self._not_apart()),
            (UNWELCOME, self._unwelcome()),
        ):
            if bad is not None:
                refused.append((reason, bad & ok))
                ok &= ~bad
        self._refused = tuple(refused)
        self._ok = ok

    def _not_near(self) -> Mask | None:
        if self._near is None or self._near_now is None:
            return None
        pods = self._cluster.pods
        now, then = pods.counts(self._near_now), pods.counts(self._near)
        bad = self._far_from(now)
        return bad if np.array_equal(now, then) else bad | self._far_from(then)

    def _far_from(self, counts: Column) -> Mask:
        columns = self._cluster.columns
        n = columns.n
        labelled, near, anywhere = np.ones(n, bool), np.ones(n, bool), False
        for key in self._near_keys:
            present, sums = domain_sums(columns, key, counts)
            labelled &= present
            found = sums > 0
            near &= found
            anywhere = anywhere or bool(found.any())
        if not anywhere and self._near_itself:
            # The first pod of a group whose pods want each other must be able to start somewhere.
            return ~labelled
        return ~(labelled & near)

    def _not_apart(self) -> Mask | None:
        if not self._apart:
            return None
        columns, pods = self._cluster.columns, self._cluster.pods
        bad = np.zeros(columns.n, bool)
        for asked, key in self._apart:
            bad |= domain_sums(columns, key, pods.counts(asked))[1] > 0
        return bad

    def _unwelcome(self) -> Mask | None:
        if not self._theirs.terms:
            return None
        columns = self._cluster.columns
        by_key: dict[str, Column] = {}
        for held in self._theirs.terms:
            held.add_to(by_key.setdefault(held.term.topology_key, np.zeros(columns.n)))
        bad = np.zeros(columns.n, bool)
        for key, counts in by_key.items():
            bad |= domain_sums(columns, key, counts)[1] > 0
        return bad

"""The score of inter-pod affinity for one pod class."""

import numpy as np

from alnair.model.workload import PodAffinity, PodSpec
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.plugins.inter_pod_affinity.terms import TermsAbout, domain_sums, query
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask


class AffinityScore:
    """Preferred terms of the pod and of pods on nodes; for affinity also their required ones.

    The raw score of a row is, over all terms, the weight (negative for anti-affinity) times the
    number of pods in the row's domain.
    """

    depends = Depends.PODS

    def __init__(self, spec: PodSpec, cluster: Cluster, hard_weight: int) -> None:
        self._cluster = cluster
        self.normalize: Normalize | None = between_extremes
        affinity = spec.pod_affinity or PodAffinity()
        self._own = [
            (query(term, spec.namespace, cluster.objects), term.topology_key, sign * term.weight)
            for sign, terms in ((1.0, affinity.preferred), (-1.0, affinity.anti_preferred))
            for term in terms
        ]
        held = cluster.pods.held
        #: Terms of others, and a factor for their weight; required ones have none of their own.
        self._theirs = [
            (TermsAbout(spec, cluster, held("preferred")), 1.0),
            (TermsAbout(spec, cluster, held("anti_preferred")), -1.0),
        ]
        self._required = TermsAbout(spec, cluster, held("required")) if hard_weight else None
        self._hard_weight = float(hard_weight)
        self._state: tuple[int, ...] = ()
        self._version = 0
        self._raw: Column = np.zeros(0)

    @property
    def version(self) -> int:
        """A number that changes when scores may; 0 = they are 0 everywhere."""
        theirs = [about.refresh() for about, _ in self._theirs]
        if self._required:
            theirs.append(self._required.refresh())
        if not (self._own or any(theirs)):
            return 0
        columns, pods = self._cluster.columns, self._cluster.pods
        state = (
            *theirs,
            columns.epoch,
            columns.nodes_changed.end,
            *(pods.version_of(asked) for asked, _, _ in self._own),
        )
        if state != self._state:
            self._state = state
            self._version += 1
            self._raw = self._sum()
        return self._version

    def over(self, feasible: Mask) -> Column:
        """Return the raw score of all rows."""
        if not self.version:
            self.normalize = None
            return np.zeros(feasible.size)
        self.normalize = between_extremes
        return self._raw

    def _sum(self) -> Column:
        columns, pods = self._cluster.columns, self._cluster.pods
        n = columns.n
        by_key: dict[str, Column] = {}
        for asked, key, weight in self._own:
            column = by_key.setdefault(key, np.zeros(n))
            column += weight * pods.counts(asked)[:n]
        for about, sign in self._theirs:
            for held in about.terms:
                column = by_key.setdefault(held.term.topology_key, np.zeros(n))
                held.add_to(column, sign * held.term.weight)
        for held in self._required.terms if self._required else ():
            column = by_key.setdefault(held.term.topology_key, np.zeros(n))
            held.add_to(column, self._hard_weight)
        raw = np.zeros(n)
        for key, column in by_key.items():
            raw += domain_sums(columns, key, column)[1]
        return raw


def between_extremes(raw: Column, feasible: Mask) -> Column:
    """Return 0 for the least of a feasible row, 100 for the most, in integers."""
    some = raw[feasible]
    least, most = some.min(initial=np.inf), some.max(initial=-np.inf)
    if most <= least:
        return np.zeros_like(raw)
    scaled: Column = np.floor(100.0 * ((raw - least) / (most - least)))
    return scaled

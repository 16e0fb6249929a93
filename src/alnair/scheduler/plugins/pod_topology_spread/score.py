"""The soft constraints of PodTopologySpread: emptier domains are better."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from alnair.model.workload import PodSpec, SpreadConstraint
from alnair.scheduler.framework.extension_points import Depends, Normalize
from alnair.scheduler.plugins.pod_topology_spread.domains import Domains, NodeChanges, have_all_keys
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask

_HOSTNAME: Final = "kubernetes.io/hostname"


class SpreadScore:
    """Domains with fewer matching pods are better, each constraint weighted by its domains' number.

    raw = Σ pods of the domain · ln(number of domains + 2) + (max_skew - 1);
    score = 100 · (most + least - raw) / most, in integers.
    """

    depends = Depends.PODS

    def __init__(
        self,
        constraints: Sequence[SpreadConstraint],
        spec: PodSpec,
        cluster: Cluster,
        *,
        strict: bool,
    ) -> None:
        self._cluster = cluster
        #: Nodes without one of the keys get nothing.
        self._keys = [c.topology_key for c in constraints] if strict else []
        self._domains = [Domains(c, spec, cluster) for c in constraints]
        self._nodes = NodeChanges(cluster.columns)
        self._scored: Mask = np.zeros(0, bool)
        self.normalize: Normalize | None = self._less_is_better

    def over(self, feasible: Mask) -> Column:
        """Return the raw score of all rows, 0 for those that get nothing."""
        self._follow_nodes()
        scored = feasible & self._scored
        total = np.zeros(scored.size)
        for domains in self._domains:
            values = domains.values
            if domains.constraint.topology_key == _HOSTNAME:
                # Each node for itself, and whatever the policies say.
                counts, number = domains.per_row(), np.count_nonzero(scored)
            else:
                counts = np.append(domains.per_domain(), 0.0)[values]
                number = np.count_nonzero(np.bincount(values[scored] + 1))
            crowd = counts * np.log(number + 2.0) + (domains.constraint.max_skew - 1)
            total += np.where(values >= 0, crowd, 0.0)
        return np.where(scored, np.floor(total + 0.5), 0.0)

    def _less_is_better(self, raw: Column, feasible: Mask) -> Column:
        scored = feasible & self._scored
        most = raw.max(where=scored, initial=0.0)
        if not most:
            return np.where(scored, 100.0, 0.0)
        least = raw.min(where=scored, initial=np.inf)
        return np.where(scored, np.floor(100.0 * (most + least - raw) / most), 0.0)

    def _follow_nodes(self) -> None:
        if self._nodes.any():
            self._scored = have_all_keys(self._cluster.columns, self._keys)
            for domains in self._domains:
                domains.follow_nodes(self._scored)

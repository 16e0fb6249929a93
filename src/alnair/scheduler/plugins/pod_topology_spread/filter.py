"""The hard constraints of PodTopologySpread: no domain runs ahead of the emptiest one."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from alnair.model.workload import PodSpec, SpreadConstraint
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.plugins.pod_topology_spread.domains import Domains, NodeChanges, have_all_keys
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Mask, Rows

TOO_SKEWED: Final = Reason("node(s) didn't match pod topology spread constraints")
NO_LABEL: Final = Reason(f"{TOO_SKEWED.text} (missing required label)", unresolvable=True)


class SpreadFilter:
    """No domain may have more than `max_skew` matching pods more than the emptiest one."""

    depends = Depends.PODS

    def __init__(
        self, constraints: Sequence[SpreadConstraint], spec: PodSpec, cluster: Cluster
    ) -> None:
        self._cluster = cluster
        self._keys = [c.topology_key for c in constraints]
        self._domains = [Domains(c, spec, cluster) for c in constraints]
        self._nodes = NodeChanges(cluster.columns)

    @property
    def version(self) -> int:
        """Return a number that changes with pods on nodes and with nodes."""
        # Both only ever grow, so the sum changes when one does.
        return self._cluster.pods.version + self._cluster.columns.nodes_changed.end

    def __call__(self, rows: Rows) -> Mask:
        """Return True for each row that all constraints allow."""
        self._follow_nodes()
        ok = np.ones(self._cluster.columns.alive[rows].size, bool)
        for domains in self._domains:
            ok &= _has_room(domains)[domains.values[rows]]
        return ok

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        """Return both reasons and the rows that each refuses."""
        self._follow_nodes()
        # As in kube-scheduler, the first constraint that fails gives the reason.
        left = np.ones(self._cluster.columns.alive[rows].size, bool)
        unlabelled = np.zeros_like(left)
        skewed = np.zeros_like(left)
        for domains in self._domains:
            values = domains.values[rows]
            unlabelled |= left & (values < 0)
            skewed |= left & (values >= 0) & ~_has_room(domains)[values]
            left &= ~(unlabelled | skewed)
        yield NO_LABEL, unlabelled
        yield TOO_SKEWED, skewed

    def _follow_nodes(self) -> None:
        if self._nodes.any():
            # Nodes without one of the keys count for none of the constraints.
            eligible = have_all_keys(self._cluster.columns, self._keys)
            for domains in self._domains:
                domains.follow_nodes(eligible)


def _has_room(domains: Domains) -> Mask:
    """Return for each domain, and last for rows without the label, whether the pod may go there."""
    constraint = domains.constraint
    counts = domains.per_domain()
    least = 0.0
    if np.count_nonzero(domains.exists) >= max(constraint.min_domains or 1, 1):
        least = counts.min(where=domains.exists, initial=np.inf)
    room = np.zeros(domains.size + 1, bool)
    room[:-1] = counts + domains.self_match - least <= constraint.max_skew
    return room

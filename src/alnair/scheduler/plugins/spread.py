"""PodTopologySpread: pods of a kind evenly over zones, nodes or other topology domains.

Source of semantics: `pkg/scheduler/framework/plugins/podtopologyspread` of Kubernetes 1.36.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from alnair.model.workload import PodSpec, SpreadConstraint
from alnair.scheduler.arguments import Arguments
from alnair.scheduler.columns import Column, Mask, Rows
from alnair.scheduler.framework import Cluster, Depends, Normalize, Reason
from alnair.scheduler.peers import KINDS, peers
from alnair.scheduler.plugins.domains import Domains, NodeChanges, have_all_keys
from alnair.scheduler.wellformed import is_label_key

Policy = Literal["Honor", "Ignore"]

TOO_SKEWED: Final = Reason("node(s) didn't match pod topology spread constraints")
NO_LABEL: Final = Reason(f"{TOO_SKEWED.text} (missing required label)", unresolvable=True)
_HOSTNAME: Final = "kubernetes.io/hostname"
#: What kube-scheduler wishes for pods that say nothing themselves.
SYSTEM_DEFAULTS: Final = (
    SpreadConstraint(3, _HOSTNAME, hard=False),
    SpreadConstraint(5, "topology.kubernetes.io/zone", hard=False),
)


class DefaultConstraint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A constraint for pods without their own; the selector is that of their peers."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    min_domains: int | None = None
    node_affinity_policy: Policy = "Honor"
    node_taints_policy: Policy = "Ignore"


class SpreadArguments(Arguments, frozen=True):
    """Arguments of PodTopologySpread.

    Attributes:
        defaulting_type: what pods of a Service or controller get that have no constraints of their
            own: `System`, what kube-scheduler wishes, or `List`, what stands in the next argument.
        default_constraints: these.
    """

    defaulting_type: Literal["System", "List"] = "System"
    default_constraints: tuple[DefaultConstraint, ...] = ()

    def problems(self) -> list[str]:
        """Return what cannot be meant."""
        found = []
        if self.default_constraints and self.defaulting_type == "System":
            found.append("defaultConstraints: with defaultingType System leave them out")
        seen = set()
        for i, constraint in enumerate(self.default_constraints):
            path = f"defaultConstraints[{i}]"
            if constraint.max_skew < 1:
                found.append(
                    f"{path}.maxSkew: {constraint.max_skew} is too small, write at least 1"
                )
            if not is_label_key(constraint.topology_key):
                found.append(
                    f"{path}.topologyKey: {constraint.topology_key!r} is no label key, "
                    "write one such as topology.kubernetes.io/zone"
                )
            which = (constraint.topology_key, constraint.when_unsatisfiable)
            if which in seen:
                found.append(f"{path}: {' with '.join(which)} is there twice, drop one")
            seen.add(which)
        return found

    def constraints(self) -> tuple[SpreadConstraint, ...]:
        """Return the default constraints, still without selectors."""
        if self.defaulting_type == "System":
            return SYSTEM_DEFAULTS
        return tuple(
            SpreadConstraint(
                max_skew=c.max_skew,
                topology_key=c.topology_key,
                hard=c.when_unsatisfiable == "DoNotSchedule",
                min_domains=c.min_domains,
                honor_affinity=c.node_affinity_policy == "Honor",
                honor_taints=c.node_taints_policy == "Honor",
            )
            for c in self.default_constraints
        )


class PodTopologySpread:
    """Filters by the constraints with DoNotSchedule, scores by those with ScheduleAnyway."""

    name = "PodTopologySpread"
    Args = SpreadArguments

    def __init__(self, arguments: SpreadArguments | None = None) -> None:
        arguments = arguments or SpreadArguments()
        self._system = arguments.defaulting_type == "System"
        self._defaults = arguments.constraints()

    def kinds(self, spec: PodSpec) -> Sequence[str]:
        """Return the kinds that default constraints take their selector from."""
        return KINDS if self._defaults and not spec.spread else ()

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Skew | None":
        """Compile the filter."""
        hard = [c for c in self._constraints(spec, cluster) if c.hard]
        return _Skew(hard, spec, cluster) if hard else None

    def score(self, spec: PodSpec, cluster: Cluster) -> "_Crowding | None":
        """Compile the score."""
        soft = [c for c in self._constraints(spec, cluster) if not c.hard]
        # With the system's defaults a node without a zone is still judged by its name.
        strict = bool(spec.spread) or not self._system
        return _Crowding(soft, spec, cluster, strict=strict) if soft else None

    def _constraints(self, spec: PodSpec, cluster: Cluster) -> Sequence[SpreadConstraint]:
        if spec.spread or not self._defaults:
            return spec.spread
        selector = peers(spec, cluster.objects)
        if not selector.requirements:
            return ()
        return [msgspec.structs.replace(c, selector=selector) for c in self._defaults]


class _Skew:
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
        # Both only ever grow, so the sum changes when one does.
        return self._cluster.pods.version + self._cluster.columns.nodes_changed.end

    def __call__(self, rows: Rows) -> Mask:
        self._follow_nodes()
        ok = np.ones(self._cluster.columns.alive[rows].size, bool)
        for domains in self._domains:
            ok &= _has_room(domains)[domains.values[rows]]
        return ok

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
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


class _Crowding:
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

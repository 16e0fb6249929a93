"""Arguments of PodTopologySpread: what pods get that have no constraints of their own."""

from typing import Final, Literal

import msgspec

from alnair.model.workload import SpreadConstraint
from alnair.scheduler.framework.arguments import Arguments
from alnair.scheduler.framework.selector_validation import is_label_key

Policy = Literal["Honor", "Ignore"]
#: What kube-scheduler wishes for pods that say nothing themselves.
SYSTEM_DEFAULTS: Final = (
    SpreadConstraint(3, "kubernetes.io/hostname", hard=False),
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

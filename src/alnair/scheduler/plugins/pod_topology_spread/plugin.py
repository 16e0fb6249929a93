"""PodTopologySpread: pods of a kind evenly over zones, nodes or other topology domains.

Source of semantics: `pkg/scheduler/framework/plugins/podtopologyspread` of Kubernetes 1.36.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from alnair.model.workload import PodSpec, SpreadConstraint
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.plugins.pod_topology_spread.arguments import SpreadArguments
from alnair.scheduler.plugins.pod_topology_spread.filter import SpreadFilter
from alnair.scheduler.plugins.pod_topology_spread.score import SpreadScore
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.pods.default_selectors import KINDS, peers


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

    def filter(self, spec: PodSpec, cluster: Cluster) -> SpreadFilter | None:
        """Compile the filter."""
        hard = [c for c in self._constraints(spec, cluster) if c.hard]
        return SpreadFilter(hard, spec, cluster) if hard else None

    def score(self, spec: PodSpec, cluster: Cluster) -> SpreadScore | None:
        """Compile the score."""
        soft = [c for c in self._constraints(spec, cluster) if not c.hard]
        # With the system's defaults a node without a zone is still judged by its name.
        strict = bool(spec.spread) or not self._system
        return SpreadScore(soft, spec, cluster, strict=strict) if soft else None

    def relaxations(self, spec: PodSpec, cluster: Cluster) -> Iterator[Relaxation]:
        """Return to prefer what one of the pod's own constraints requires."""
        for i, constraint in enumerate(spec.spread):
            if constraint.hard:
                softer = replace(constraint, hard=False, min_domains=None)
                spread = tuple(softer if k == i else c for k, c in enumerate(spec.spread))
                text = (
                    f"spread over {constraint.topology_key} with whenUnsatisfiable: ScheduleAnyway"
                )
                yield Relaxation("topology-spread", text, 0.35, replace(spec, spread=spread))

    def _constraints(self, spec: PodSpec, cluster: Cluster) -> Sequence[SpreadConstraint]:
        if spec.spread or not self._defaults:
            return spec.spread
        selector = peers(spec, cluster.objects)
        if not selector.requirements:
            return ()
        return [replace(c, selector=selector) for c in self._defaults]

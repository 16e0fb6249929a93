"""InterPodAffinity: near pods that the pod wants near, away from those it, or they, want away.

Source of semantics: `pkg/scheduler/framework/plugins/interpodaffinity` of Kubernetes 1.36. Counts
of pods come from the pod index, per row; a domain (a zone, a host) is a value of a node label, and
its count is one sum over rows. `matchLabelKeys` and `mismatchLabelKeys` are not looked at: the API
server merged them into the selectors when the pod was created, and what it merged then counts, even
if the pod's labels changed since.
"""

from collections.abc import Iterator

from alnair.model.workload import LabelSelector, PodAffinity, PodSpec
from alnair.scheduler.framework.arguments import Arguments, out_of_range
from alnair.scheduler.framework.extension_points import Refusal
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.framework.selector_validation import joined, requirement_problems
from alnair.scheduler.plugins.inter_pod_affinity.filter import AffinityFilter
from alnair.scheduler.plugins.inter_pod_affinity.relaxations import preferred_instead
from alnair.scheduler.plugins.inter_pod_affinity.score import AffinityScore
from alnair.scheduler.state.cluster import Cluster

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class InterPodArguments(Arguments, frozen=True):
    """Arguments of InterPodAffinity, as kube-scheduler has them."""

    #: 0-100: what a required affinity term of a pod on a node counts for pods that it selects.
    hard_pod_affinity_weight: int = 1
    #: Pods without preferred terms of their own are not scored by those of pods on nodes.
    ignore_preferred_terms_of_existing_pods: bool = False

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types."""
        return out_of_range("hardPodAffinityWeight", self.hard_pod_affinity_weight, 0, 100)


class InterPodAffinity:
    """Filters by required terms of the pod and of those on nodes; scores by preferred ones."""

    name = "InterPodAffinity"
    Args = InterPodArguments

    def __init__(self, arguments: InterPodArguments | None = None) -> None:
        self.arguments = arguments or InterPodArguments()

    def pre_filter(self, spec: PodSpec) -> Refusal | None:
        """Refuse pods with malformed selectors."""
        problems = _problems(spec.pod_affinity) if spec.pod_affinity else []
        return Refusal(self.name, f"parsing pod: {joined(problems)}") if problems else None

    def pre_score(self, spec: PodSpec) -> Refusal | None:
        """Refuse to score pods with malformed selectors."""
        problems = _problems(spec.pod_affinity) if spec.pod_affinity else []
        text = "failed to parse pod"
        return Refusal(self.name, f"{text}: {joined(problems)}") if problems else None

    def kinds(self, spec: PodSpec) -> tuple[str, ...]:
        """Return the objects that decide, if any selector is known that could see the pod."""
        return ("Namespace",) if spec.namespace else ()

    def filter(self, spec: PodSpec, cluster: Cluster) -> AffinityFilter | None:
        """Compile the filter."""
        # A class without namespace: no pod that is known has any terms, nor has this one.
        return AffinityFilter(spec, cluster) if spec.namespace else None

    def score(self, spec: PodSpec, cluster: Cluster) -> AffinityScore | None:
        """Compile the score."""
        affinity = spec.pod_affinity or PodAffinity()
        prefers = affinity.preferred or affinity.anti_preferred
        ignored = self.arguments.ignore_preferred_terms_of_existing_pods and not prefers
        if ignored or not spec.namespace:
            return None
        return AffinityScore(spec, cluster, self.arguments.hard_pod_affinity_weight)

    def relaxations(self, spec: PodSpec, cluster: Cluster) -> Iterator[Relaxation]:
        """Return to prefer what one of the pod's terms requires."""
        return preferred_instead(spec)


def _problems(affinity: PodAffinity) -> list[str]:
    """Return what is wrong with the first malformed selector of each list of terms."""
    found = []
    for name, terms in (
        ("requiredAffinityTerms", affinity.required),
        ("requiredAntiAffinityTerms", affinity.anti_required),
        ("preferredAffinityTerms", affinity.preferred),
        ("preferredAntiAffinityTerms", affinity.anti_preferred),
    ):
        for term in terms:
            problem = _problem(term.selector) or _problem(term.namespace_selector)
            if problem:
                found.append(f"{name}: {problem}")
                break
    return found


def _problem(selector: LabelSelector | None) -> str:
    for requirement in selector.requirements if selector else ():
        if requirement.operator not in _OPERATORS:
            return f'"{requirement.operator}" is not a valid label selector operator'
        if problems := requirement_problems(requirement):
            return joined(problems)
    return ""

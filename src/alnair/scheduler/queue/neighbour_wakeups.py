"""Which parked classes it may help that pods came to other nodes, or that a node went.

A pod that comes to the emptiest domain evens out a spread, and one that is wanted near makes its
domain a choice. What departs may help anybody, and is no matter of this module.
Source of the rule: the queueing hints of PodTopologySpread and InterPodAffinity in Kubernetes.
"""

from collections.abc import Mapping

from alnair.model.workload import Labels, LabelSelector, Pod, PodSpec, PodTerm
from alnair.scheduler.state.pods.label_selectors import matches


class NeighbourChanges:
    """Which pods came to other nodes, and whether a node went, since the last look."""

    def __init__(self) -> None:
        # No mappings of labels: all pods come at the start.
        self._came: dict[tuple[str, Labels], None] = {}
        self._node_went = False

    def __bool__(self) -> bool:
        return self._node_went or bool(self._came)

    def pod_came(self, pod: Pod) -> None:
        """Note a pod on a node; pods that no selector can tell apart count once."""
        self._came[pod.namespace, pod.labels] = None

    def node_went(self) -> None:
        """Note that a node went, and perhaps a domain with it."""
        self._node_went = True

    def clear(self) -> None:
        """Begin anew."""
        self._came.clear()
        self._node_went = False

    def may_help(self, spec: PodSpec) -> bool:
        """Return whether this may help a class; where in doubt it may."""
        return self._node_went or any(
            _is_wanted(namespace, dict(labels), spec) for namespace, labels in self._came
        )


def depends_on_neighbours(spec: PodSpec) -> bool:
    """Return whether pods on other nodes may help the class."""
    affinity = spec.pod_affinity
    return any(c.hard for c in spec.spread) or bool(affinity and affinity.required)


def _is_wanted(namespace: str, labels: Mapping[str, str], spec: PodSpec) -> bool:
    if namespace == spec.namespace and any(
        c.hard and _selects(c.selector, labels) for c in spec.spread
    ):
        return True
    affinity = spec.pod_affinity
    return affinity is not None and any(
        _selects(term.selector, labels) and _may_mean(namespace, term, spec)
        for term in affinity.required
    )


def _may_mean(namespace: str, term: PodTerm, spec: PodSpec) -> bool:
    # Which namespaces a selector means is not looked up here.
    return term.namespace_selector is not None or namespace in (
        term.namespaces or (spec.namespace,)
    )


def _selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and matches(selector, labels)

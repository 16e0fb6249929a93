"""From API objects: selectors, and what a pod says about nodes and pods near it."""

from alnair.kube.objects import wire
from alnair.model.workload import (
    LabelSelector,
    NodeAffinity,
    PodAffinity,
    PodTerm,
    Preference,
    Requirement,
    SpreadConstraint,
    Term,
)


def node_affinity(affinity: wire.Affinity | None) -> NodeAffinity | None:
    """Return what a pod says of nodes; None, which any node meets, if it says nothing."""
    node = affinity.node_affinity if affinity else None
    if node is None or (node.required is None and not node.preferred):
        return None
    required = node.required
    return NodeAffinity(
        required=None
        if required is None
        else tuple(_term(t) for t in required.node_selector_terms or ()),
        preferred=tuple(Preference(p.weight, _term(p.preference)) for p in node.preferred or ()),
    )


def spread_constraint(constraint: wire.SpreadConstraintWire) -> SpreadConstraint:
    """Return a topology spread constraint, with Kubernetes' defaults for what is not said."""
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        hard=constraint.when_unsatisfiable == "DoNotSchedule",
        selector=label_selector(constraint.label_selector),
        min_domains=constraint.min_domains,
        honor_affinity=(constraint.node_affinity_policy or "Honor") == "Honor",
        honor_taints=constraint.node_taints_policy == "Honor",
        match_label_keys=tuple(constraint.match_label_keys or ()),
    )


def pod_affinity(affinity: wire.Affinity | None) -> PodAffinity | None:
    """Return what a pod says of pods near it; None if it says nothing."""
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return None
    near = affinity.pod_affinity or wire.PodAffinityWire()
    apart = affinity.pod_anti_affinity or wire.PodAffinityWire()
    return PodAffinity(
        required=tuple(_pod_term(t) for t in near.required or ()),
        preferred=tuple(_pod_term(t.pod_affinity_term, t.weight) for t in near.preferred or ()),
        anti_required=tuple(_pod_term(t) for t in apart.required or ()),
        anti_preferred=tuple(
            _pod_term(t.pod_affinity_term, t.weight) for t in apart.preferred or ()
        ),
    )


def _pod_term(term: wire.PodAffinityTermWire, weight: int = 0) -> PodTerm:
    return PodTerm(
        topology_key=term.topology_key,
        selector=label_selector(term.label_selector),
        namespaces=tuple(term.namespaces or ()),
        namespace_selector=label_selector(term.namespace_selector),
        weight=weight,
        match_label_keys=tuple(term.match_label_keys or ()),
        mismatch_label_keys=tuple(term.mismatch_label_keys or ()),
    )


def label_selector(selector: wire.LabelSelectorWire | None) -> LabelSelector | None:
    """Return the selector as requirements; None, which matches nothing, stays None."""
    if selector is None:
        return None
    equal = (Requirement(k, "In", (v,)) for k, v in sorted((selector.match_labels or {}).items()))
    return LabelSelector((*equal, *(_requirement(r) for r in selector.match_expressions or ())))


def _term(term: wire.SelectorTerm) -> Term:
    return Term(
        labels=tuple(_requirement(r) for r in term.match_expressions or ()),
        fields=tuple(_requirement(r) for r in term.match_fields or ()),
    )


def _requirement(requirement: wire.SelectorRequirement) -> Requirement:
    return Requirement(requirement.key, requirement.operator, tuple(requirement.values or ()))

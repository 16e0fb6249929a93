"""Advice for pods that no node takes for the company there: prefer what was required."""

from collections.abc import Iterator

from msgspec.structs import replace

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.relaxation import Relaxation, requirement_text


def preferred_instead(spec: PodSpec) -> Iterator[Relaxation]:
    """Return, for each required term, the pod that only prefers it."""
    affinity = spec.pod_affinity
    if affinity is None:
        return
    for field, softer_field, size, what in (
        ("anti_required", "anti_preferred", 0.4, "pod anti-affinity"),
        ("required", "preferred", 0.5, "pod affinity"),
    ):
        terms = getattr(affinity, field)
        for i, term in enumerate(terms):
            rest = tuple(t for k, t in enumerate(terms) if k != i)
            said = " and ".join(
                map(requirement_text, term.selector.requirements if term.selector else ())
            )
            text = f"prefer instead of require {what} by {term.topology_key} to pods with {said}"
            preferred = (*getattr(affinity, softer_field), replace(term, weight=100))
            softer = replace(affinity, **{field: rest, softer_field: preferred})
            yield Relaxation("pod-affinity", text, size, replace(spec, pod_affinity=softer))

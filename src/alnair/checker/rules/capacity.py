"""No node promises more of a resource than it has."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from alnair.checker.objects import api_names
from alnair.checker.objects.amounts import shown
from alnair.checker.objects.nodes import CheckedNode
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.violation import Violation

_OF_SLICES: Final = frozenset({api_names.MEMORY, api_names.COMPUTE, api_names.SLOTS})


def node_capacity(node: CheckedNode, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """Any resource: cpu (cores), memory and storage (bytes), pods, extended resources (pieces)."""
    used: dict[str, Fraction] = {}
    for pod in pods:
        for resource in pod.needs:
            used[resource] = used.get(resource, Fraction(0)) + _taken(pod, resource, node)
    for resource, value in sorted(used.items()):
        limit = node.limit(resource)
        if limit is not None and value > limit:
            yield Violation(
                "node-capacity", resource, node.name, used=shown(value), limit=shown(limit)
            )


def _taken(pod: CheckedPod, resource: str, node: CheckedNode) -> Fraction:
    """Return what the pod takes of what the node says that it has.

    That is without its unhealthy GPUs, on which a pod may be that was there before; all slices of a
    pod are on one GPU.
    """
    value = pod.needs[resource]
    whole = resource == api_names.WHOLE
    if not whole and resource not in _OF_SLICES:
        return value
    parts = pod.parts or ()
    unhealthy = {p.uuid for p in parts if p.whole == whole and p.uuid in node.unhealthy}
    if whole:
        return max(value - len(unhealthy), Fraction(0))
    return Fraction(0) if unhealthy else value


def readable(node: CheckedNode, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """What is on the node, and the node itself, can be read; else nothing about them is proved."""
    if node.problem:
        yield Violation("readable", f"node {node.name}", node.name, used=node.problem)
    for pod in pods:
        if pod.problem:
            yield Violation("readable", pod.title, node.name, used=pod.problem)

"""No node promises more of a resource than it has."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from alnair.checker.objects.amounts import shown
from alnair.checker.objects.nodes import CheckedNode
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.violation import Violation


def node_capacity(node: CheckedNode, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """Any resource: cpu (cores), memory and storage (bytes), pods, extended resources (pieces)."""
    used: dict[str, Fraction] = {}
    for pod in pods:
        for resource, value in pod.needs.items():
            used[resource] = used.get(resource, Fraction(0)) + value
    for resource, value in sorted(used.items()):
        limit = node.allocatable.get(resource, Fraction(0))
        if value > limit:
            yield Violation(
                "node-capacity", resource, node.name, used=shown(value), limit=shown(limit)
            )


def readable(node: CheckedNode, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """What is on the node, and the node itself, can be read; else nothing about them is proved."""
    if node.problem:
        yield Violation("readable", f"node {node.name}", node.name, used=node.problem)
    for pod in pods:
        if pod.problem:
            yield Violation("readable", pod.title, node.name, used=pod.problem)

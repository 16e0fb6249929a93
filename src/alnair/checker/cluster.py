"""The whole cluster at one moment, and everything that is wrong with it."""

import msgspec

from alnair.checker import registry
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.objects.state import CheckedCluster
from alnair.checker.violation import Violation


class Finding(msgspec.Struct, frozen=True):
    """What a check found.

    Attributes:
        nodes: Nodes looked at.
        pods: Pods looked at, of the chosen namespaces.
        bound: Those of them that have a node.
        violations: All broken promises.
    """

    nodes: int
    pods: int
    bound: int
    violations: list[Violation]

    def summary(self) -> str:
        """Return the outcome in a line."""
        # In words of its own: the checker imports nothing else of Alnair.
        nodes = f"{self.nodes} node{'' if self.nodes == 1 else 's'}"
        pods = f"{self.pods} pod{'' if self.pods == 1 else 's'}"
        looked = f"{nodes}, {pods}, {self.bound} of them bound"
        count = len(self.violations)
        if not count:
            return f"checked {looked}: every promise is kept"
        return f"checked {looked}: {count} violation{'s' if count > 1 else ''}"


def check(
    cluster: CheckedCluster, namespaces: frozenset[str] = frozenset(), expected: int | None = None
) -> Finding:
    """Check everything.

    Args:
        cluster: The objects; pods of all namespaces, for they use the same nodes.
        namespaces: Report only on pods of these, and on nodes that run one of them; empty = all.
        expected: How many pods of these namespaces there should be, None if nobody knows.
    """
    ours = [p for p in cluster.pods if not namespaces or p.namespace in namespaces]
    bound = [p for p in ours if p.node]
    violations = []
    holding: dict[str, list[CheckedPod]] = {}
    for pod in cluster.pods:
        if pod.holds:
            holding.setdefault(pod.node, []).append(pod)
    touched = {pod.node for pod in bound}
    for name, pods in sorted(holding.items()):
        if name in cluster.nodes and name in touched:
            violations += registry.of_node(cluster.nodes[name], pods)
    for pod in bound:
        if pod.holds:
            violations += registry.of_pod(pod, cluster.nodes.get(pod.node))
    members: dict[tuple[str, str], list[CheckedPod]] = {}
    for pod in ours:
        if pod.group:
            members.setdefault((pod.namespace, pod.group), []).append(pod)
    for group in cluster.groups:
        violations += registry.of_gang(group, members.get(group.key, []))
    violations += registry.of_cluster(cluster, ours)
    if expected is not None and len(ours) != expected:
        violations.append(Violation("pods-expected", "pods", used=len(ours), limit=expected))
    return Finding(len(cluster.nodes), len(ours), len(bound), violations)

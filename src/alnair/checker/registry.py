"""Which rules there are. Each has a test with objects that break it and with some that do not."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from alnair.checker.objects.groups import CheckedGang
from alnair.checker.objects.nodes import CheckedNode
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.objects.state import CheckedCluster
from alnair.checker.rules import (
    capacity,
    devices,
    gangs,
    gpu_assignment,
    gpu_request,
    neighbours,
    placement,
    ports,
    storage,
)
from alnair.checker.violation import Violation

NodeRule = Callable[[CheckedNode, Sequence[CheckedPod]], Iterable[Violation]]
PodRule = Callable[[CheckedPod, CheckedNode | None], Iterable[Violation]]
#: Told the whole cluster, and on which pods to report.
ClusterRule = Callable[[CheckedCluster, Sequence[CheckedPod]], Iterable[Violation]]
GangRule = Callable[[CheckedGang, Sequence[CheckedPod]], Iterable[Violation]]

#: About the pods that hold something of a node, together.
NODE_RULES: Final[Mapping[str, NodeRule]] = {
    "readable": capacity.readable,
    "node-capacity": capacity.node_capacity,
    "gpu-memory": devices.gpu_memory,
    "gpu-compute": devices.gpu_compute,
    "gpu-compute-hard": devices.gpu_compute_hard,
    "gpu-exclusive": devices.gpu_exclusive,
    "gpu-count": devices.gpu_count,
    "host-ports": ports.host_ports,
}
#: About a bound pod and its node.
POD_RULES: Final[Mapping[str, PodRule]] = {
    "node-exists": placement.node_exists,
    "node-selector": placement.node_selector,
    "node-affinity": placement.node_affinity,
    "node-taints": placement.node_taints,
    "gpu-model": placement.gpu_model,
    "gpu-exists": gpu_assignment.gpu_exists,
    "assignment-present": gpu_assignment.assignment_present,
    "assignment-readable": gpu_assignment.assignment_readable,
    "assignment-amounts": gpu_assignment.assignment_amounts,
    "slices-together": gpu_assignment.slices_together,
    "possible-request": gpu_request.possible_request,
    "claims-allocated": gpu_request.claims_allocated,
}
#: About a gang.
GANG_RULES: Final[Mapping[str, GangRule]] = {"gang-whole": gangs.gang_whole}
#: About pods on several nodes, or pods and further objects; judged by a single look.
CLUSTER_RULES: Final[Mapping[str, ClusterRule]] = {
    "gang-topology": gangs.gang_topology,
    "pod-anti-affinity": neighbours.pod_anti_affinity,
    "claim-exclusive": storage.claim_exclusive,
    "volume-node": storage.volume_node,
}
#: Only seen by watching, or by whoever knows how many pods there should be.
WATCH_RULES: Final = (
    "bound-once",
    "pod-affinity",
    "quota-max",
    "preemption-priority",
    "gang-minimum",
    "pod-lost",
    "pods-expected",
)


def of_node(node: CheckedNode, pods: Sequence[CheckedPod]) -> list[Violation]:
    """Return what is wrong with a node and the pods that hold something of it."""
    if not pods:
        # Nothing is promised of it, so nothing about it has to be proved.
        return []
    return [violation for rule in NODE_RULES.values() for violation in rule(node, pods)]


def of_pod(pod: CheckedPod, node: CheckedNode | None) -> list[Violation]:
    """Return what is wrong with a bound pod."""
    return [violation for rule in POD_RULES.values() for violation in rule(pod, node)]


def of_gang(group: CheckedGang, members: Sequence[CheckedPod]) -> list[Violation]:
    """Return what is wrong with a gang."""
    return [violation for rule in GANG_RULES.values() for violation in rule(group, members)]


def of_cluster(cluster: CheckedCluster, chosen: Sequence[CheckedPod]) -> list[Violation]:
    """Return what is wrong among pods and further objects, as far as it is about these pods."""
    return [v for rule in CLUSTER_RULES.values() for v in rule(cluster, chosen)]

"""A pod's claims are its own where they must be, and its node can reach its volumes."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from alnair.checker.objects.matching import accepts
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.objects.state import CheckedCluster
from alnair.checker.violation import Violation

_ONE_POD = "ReadWriteOncePod"


def claim_exclusive(cluster: CheckedCluster, chosen: Sequence[CheckedPod]) -> Iterator[Violation]:
    """A ReadWriteOncePod claim has one pod of ours that uses it (pods on their way out apart)."""
    users: defaultdict[tuple[str, str], list[CheckedPod]] = defaultdict(list)
    for pod in chosen:
        if not (pod.ours and pod.holds) or pod.deleting:
            continue
        for name in pod.claims:
            claim = cluster.claims.get((pod.namespace, name))
            if claim is not None and _ONE_POD in claim.modes:
                users[claim.key].append(pod)
    for (namespace, name), pods in sorted(users.items()):
        if len(pods) > 1:
            yield Violation(
                "claim-exclusive",
                f"persistentvolumeclaim {namespace}/{name}",
                used=", ".join(sorted(pod.title for pod in pods)),
                limit="1 pod",
            )


def volume_node(cluster: CheckedCluster, chosen: Sequence[CheckedPod]) -> Iterator[Violation]:
    """The node of a pod of ours is one that the node affinity of each of its volumes accepts."""
    for pod in chosen:
        node = cluster.nodes.get(pod.node)
        if node is None or not (pod.ours and pod.holds):
            continue
        for name in pod.claims:
            claim = cluster.claims.get((pod.namespace, name))
            volume = cluster.volumes.get(claim.volume) if claim else None
            if volume is None or volume.terms is None or accepts(node, volume.terms):
                continue
            yield Violation(
                "volume-node",
                pod.title,
                node.name,
                used=f"volume {volume.name} of claim {name}",
                limit="a node that the volume's node affinity accepts",
            )

"""The objects of a cluster at one moment, as the checker sees them."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from alnair.checker.objects import api_names
from alnair.checker.objects.groups import CheckedGang, group_of
from alnair.checker.objects.nodes import CheckedNode, node_of
from alnair.checker.objects.pods import CheckedPod, pod_of
from alnair.checker.objects.storage import CheckedClaim, CheckedVolume, claim_of, volume_of

Manifests = Iterable[Mapping[str, Any]]


class CheckedCluster(msgspec.Struct):
    """Nodes by name, pods, gangs, claims by namespace and name, volumes by name."""

    nodes: dict[str, CheckedNode]
    pods: list[CheckedPod]
    groups: list[CheckedGang]
    claims: dict[tuple[str, str], CheckedClaim]
    volumes: dict[str, CheckedVolume]


def cluster_of(
    nodes: Manifests,
    pods: Manifests,
    groups: Manifests,
    ours: frozenset[str] = api_names.SCHEDULERS,
    claims: Manifests = (),
    volumes: Manifests = (),
) -> CheckedCluster:
    """Read the objects of a cluster."""
    return CheckedCluster(
        {node.name: node for node in map(node_of, nodes)},
        [pod_of(pod, ours) for pod in pods],
        [group_of(group) for group in groups],
        {claim.key: claim for claim in map(claim_of, claims)},
        {volume.name: volume for volume in map(volume_of, volumes)},
    )

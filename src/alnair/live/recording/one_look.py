"""What one look at a cluster tells of it: of pods that are gone, nothing."""

import time
from typing import Final, TypeVar

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.pod_groups.dialects import GangProjector, PodGroupWire
from alnair.kube.resources import LEGACY_PODGROUPS, NODES, PODGROUPS, PODS, Resource
from alnair.live.recording.record_lines import (
    GroupRecord,
    NodeWire,
    PodReader,
    PodWire,
    node_record,
    utilization,
)
from alnair.live.recording.recorded_cluster import Known, Line

T = TypeVar("T")
_GROUPS: Final = (PODGROUPS, LEGACY_PODGROUPS)


async def look(client: Client) -> Known:
    """Return what one look at a cluster tells."""
    known, read = Known(), PodReader()
    for kind in _GROUPS:
        project = GangProjector(kind.api_version)
        for gang in map(project, await _listed(client, kind.typed(PodGroupWire))):
            group = GroupRecord(gang.namespace, gang.name, gang.min_member)
            known.take(Line(t=time.time(), group=group))
    pods = await _listed(client, PODS.typed(PodWire))
    now = time.time()
    for pod in pods:
        known.take(Line(t=now, pod=read(pod)))
        if (util := utilization(pod)) is not None:
            known.take(Line(t=now, util=(pod.metadata.uid, util)))
    # Nodes last: each pod's node is then among them, unless it is really gone.
    nodes = await _listed(client, NODES.typed(NodeWire))
    now = time.time()
    for node in nodes:
        known.take(Line(t=now, node=node_record(node)))
    known.take(Line(t=now))
    return known


async def _listed(client: Client, kind: Resource[T]) -> list[T]:
    try:
        return (await client.list(kind)).items
    except NotFound:
        return []  # the kind is not installed: there are no objects of it

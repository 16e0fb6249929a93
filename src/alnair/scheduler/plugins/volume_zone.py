"""VolumeZone: bound volumes that say their zone or region in a label.

Source of semantics: `pkg/scheduler/framework/plugins/volumezone`.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from alnair.model.volumes import CLAIM, PersistentVolume
from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.framework.refuse_all import RefuseAll
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Mask, Rows
from alnair.scheduler.state.nodes.labels import ABSENT
from alnair.scheduler.state.objects.api_objects import Objects, Read
from alnair.scheduler.state.objects.storage_objects import (
    find_claim,
    find_class,
    find_volume,
    reads,
)

ZONE = Reason("node(s) had no available volume zone", unresolvable=True)
#: Keys of zones and regions, the old ones with what they are called today.
_TODAY = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}


class VolumeZone:
    """Filters by the zone labels of persistent volumes."""

    name = "VolumeZone"

    def reads(self, spec: PodSpec, objects: Objects) -> Sequence[Read]:
        """Return the claims of the pod, with their volumes and classes."""
        return reads(spec, objects) if spec.volumes else ()

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Zones | RefuseAll | None":
        """Compile the filter."""
        wanted: list[tuple[str, frozenset[str]]] = []
        for volume in spec.volumes:
            if volume.kind != CLAIM:
                continue
            found = _volume_of(spec, volume.name, cluster.objects)
            if isinstance(found, str):
                return RefuseAll(found, cluster.columns)
            if found is not None:
                labels = dict(found.labels)
                wanted += [(key, _zones(labels[key])) for key in _TODAY if key in labels]
        return _Zones([w for w in wanted if w[1]], cluster) if wanted else None


class _Zones:
    depends = Depends.NODE

    def __init__(self, wanted: list[tuple[str, frozenset[str]]], cluster: Cluster) -> None:
        self._wanted = wanted
        self._columns = cluster.columns

    def __call__(self, rows: Rows) -> Mask:
        labels = self._columns.labels
        ok = np.ones(self._columns.alive[rows].size, bool)
        for key, zones in self._wanted:
            matched = np.zeros_like(ok)
            missing = labels.column(key)[rows] == ABSENT
            for name, where in ((key, ~missing), (_TODAY[key], missing)):
                values = [labels.value(name, zone) for zone in sorted(zones)]
                matched |= where & np.isin(labels.column(name)[rows], values)
            ok &= matched
        # A node that says nothing of zones is taken for one of a cluster without any.
        zoned = np.zeros_like(ok)
        for key in _TODAY:
            zoned |= labels.column(key)[rows] != ABSENT
        return ok | ~zoned

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield ZONE, ~self(rows)


def _volume_of(spec: PodSpec, name: str, objects: Objects) -> PersistentVolume | str | None:
    """Return the volume of a claim, None if the scheduler is to bind it, or why neither is so."""
    if not name:
        return "PersistentVolumeClaim had no name"
    claim = find_claim(spec.namespace, name, objects)
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if claim.volume:
        found = find_volume(claim.volume, objects)
        return found or f'persistentvolume "{claim.volume}" not found'
    if not claim.storage_class:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = find_class(claim.storage_class, objects)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
    if not storage_class.binding_mode:
        return f'VolumeBindingMode not set for StorageClass "{claim.storage_class}"'
    if storage_class.binding_mode == "WaitForFirstConsumer":
        return None
    return "PersistentVolume had no name"


def _zones(label: str) -> frozenset[str]:
    """Return the zones of a volume; a label with an empty one among them counts as none."""
    zones = frozenset(zone.strip() for zone in label.split("__"))
    return frozenset() if "" in zones else zones

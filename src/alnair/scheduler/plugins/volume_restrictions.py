"""VolumeRestrictions: disks that one node cannot mount twice, and claims for one pod only.

Source of semantics: `pkg/scheduler/framework/plugins/volumerestrictions`.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from alnair.model.volumes import AWS_EBS, CLAIM, GCE_PD, ISCSI, RBD
from alnair.model.workload import PodSpec, PodVolume
from alnair.scheduler.framework.extension_points import Depends, Reason
from alnair.scheduler.framework.refuse_all import RefuseAll
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Mask, Rows
from alnair.scheduler.state.objects.api_objects import Objects, Read
from alnair.scheduler.state.objects.storage_objects import find_claim, reads

DISK = Reason("node(s) had no available disk")
CLAIM_IN_USE = Reason(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
_EXCLUSIVE = (AWS_EBS, GCE_PD, ISCSI, RBD)


class VolumeRestrictions:
    """Filters by the volumes of other pods."""

    name = "VolumeRestrictions"

    def reads(self, spec: PodSpec, objects: Objects) -> Sequence[Read]:
        """Return the claims of the pod."""
        return reads(spec, objects) if spec.volumes else ()

    def filter(self, spec: PodSpec, cluster: Cluster) -> "_Shared | RefuseAll | None":
        """Compile the filter."""
        disks = [v for v in spec.volumes if v.kind in _EXCLUSIVE]
        single = []
        for volume in spec.volumes:
            if volume.kind != CLAIM:
                continue
            claim = find_claim(spec.namespace, volume.name, cluster.objects)
            if claim is None:
                text = f'persistentvolumeclaim "{volume.name}" not found'
                return RefuseAll(text, cluster.columns)
            if "ReadWriteOncePod" in claim.modes:
                single.append(volume)
        return _Shared(spec.namespace, disks, single, cluster) if disks or single else None


class _Shared:
    depends = Depends.PODS

    def __init__(
        self, namespace: str, disks: list[PodVolume], single: list[PodVolume], cluster: Cluster
    ) -> None:
        self._namespace = namespace
        self._disks = disks
        self._single = single
        self._columns = cluster.columns
        self._volumes = cluster.volumes

    @property
    def version(self) -> int:
        return self._volumes.version

    def __call__(self, rows: Rows) -> Mask:
        if self._in_use():
            return np.zeros(self._columns.alive[rows].size, bool)
        return ~self._conflicts()[rows]

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        conflicts = self._conflicts()[rows]
        yield DISK, conflicts
        if self._in_use():
            yield CLAIM_IN_USE, ~conflicts

    def _in_use(self) -> bool:
        return any(any(True for _ in self._volumes.users(self._namespace, v)) for v in self._single)

    def _conflicts(self) -> Mask:
        mask = np.zeros(self._columns.alive.size, bool)
        for disk in self._disks:
            for row, other in self._volumes.users(self._namespace, disk):
                mask[row] |= _conflict(disk, other)
        return mask


def _conflict(one: PodVolume, other: PodVolume) -> bool:
    """Return whether two pods cannot have this same disk on one node."""
    if one.kind == AWS_EBS:
        return True
    if one.kind == RBD and not set(one.monitors) & set(other.monitors):
        return False
    return not (one.read_only and other.read_only)

"""The volumes of a pod that can keep it from a node, out of all that it has."""

from alnair.kube.objects import wire
from alnair.model import volumes
from alnair.model.workload import PodVolume


def pod_volumes(pod: wire.PodWire) -> tuple[PodVolume, ...]:
    """Return the volumes of a pod that its nodes depend on, in their order."""
    meta = pod.metadata
    found: list[PodVolume] = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.append(PodVolume(volumes.CLAIM, volume.persistent_volume_claim.claim_name))
        elif volume.ephemeral is not None:
            claim = f"{meta.name}-{volume.name}"
            found.append(PodVolume(volumes.EPHEMERAL, claim, pod=meta.name, uid=meta.uid))
        elif disk := named_disk(volume):
            plugin, source, name = disk
            monitors = tuple(source.monitors or ())
            found.append(PodVolume(plugin, name, source.read_only, monitors=monitors))
    return tuple(found)


def named_disk(volume: wire.VolumeWire) -> tuple[str, wire.DiskWire, str] | None:
    """Return the plugin, its fields, and what makes the disk the same as another one."""
    if disk := volume.aws_elastic_block_store:
        return volumes.AWS_EBS, disk, disk.volume_id
    if disk := volume.gce_persistent_disk:
        return volumes.GCE_PD, disk, disk.pd_name
    if disk := volume.iscsi:
        return volumes.ISCSI, disk, disk.iqn
    if disk := volume.rbd:
        return volumes.RBD, disk, f"{disk.pool}/{disk.image}"
    if disk := volume.azure_disk:
        return volumes.AZURE_DISK, disk, disk.disk_uri
    if disk := volume.cinder:
        return volumes.CINDER, disk, disk.volume_id
    if disk := volume.portworx_volume:
        return volumes.PORTWORX, disk, disk.volume_id
    return None

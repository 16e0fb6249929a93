"""The storage objects that plugins read, and how a pod's volumes name them."""

from collections.abc import Iterator

from alnair.model.volumes import (
    CLAIM,
    EPHEMERAL,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from alnair.model.workload import PodSpec, PodVolume
from alnair.scheduler.state.objects.api_objects import Key, Objects, Read

#: Kinds of API objects.
ATTACHMENTS = "VolumeAttachment"
CAPACITIES = "CSIStorageCapacity"
CLAIMS = "PersistentVolumeClaim"
CLASSES = "StorageClass"
CSI_NODES = "CSINode"
DRIVERS = "CSIDriver"
VOLUMES = "PersistentVolume"
KINDS = frozenset((ATTACHMENTS, CAPACITIES, CLAIMS, CLASSES, CSI_NODES, DRIVERS, VOLUMES))


def concerns(spec: PodSpec, kind: str, key: Key) -> bool:
    """Return whether a change of a storage object may help pods of the class."""
    if kind != CLAIMS:
        return bool(spec.volumes)
    return any((spec.namespace, v.name) == key for v in spec.volumes if is_claim(v))


def find_claim(namespace: str, name: str, objects: Objects) -> PersistentVolumeClaim | None:
    """Return a claim, if it exists."""
    claim: PersistentVolumeClaim | None = objects.of(CLAIMS).get((namespace, name))
    return claim


def find_volume(name: str, objects: Objects) -> PersistentVolume | None:
    """Return a persistent volume, if it exists."""
    volume: PersistentVolume | None = objects.of(VOLUMES).get(("", name))
    return volume


def find_class(name: str, objects: Objects) -> StorageClass | None:
    """Return a storage class, if it exists."""
    found: StorageClass | None = objects.of(CLASSES).get(("", name))
    return found


def is_claim(volume: PodVolume) -> bool:
    """Return whether the volume is a claim: the pod's own, or one made for this volume."""
    return volume.kind in (CLAIM, EPHEMERAL)


def claim_volumes(spec: PodSpec) -> Iterator[PodVolume]:
    """Return the volumes of the pod that are claims, each claim once."""
    seen: set[str] = set()
    for volume in spec.volumes:
        if is_claim(volume) and volume.name not in seen:
            seen.add(volume.name)
            yield volume


def reads(spec: PodSpec, objects: Objects) -> list[Read]:
    """Return the claims of the pod, with the volume and the class that each names."""
    found: list[Read] = []
    for volume in claim_volumes(spec):
        found.append((CLAIMS, (spec.namespace, volume.name)))
        if claim := find_claim(spec.namespace, volume.name, objects):
            found += [(VOLUMES, ("", claim.volume)), (CLASSES, ("", claim.storage_class))]
    return found


def foreign(volume: PodVolume, claim: PersistentVolumeClaim) -> str:
    """Return why an ephemeral volume may not use the claim, or an empty text."""
    if volume.kind != EPHEMERAL or claim.owner == volume.uid:
        return ""
    return (
        f"PVC {claim.namespace}/{claim.name} was not created for pod "
        f"{claim.namespace}/{volume.pod} (pod is not owner)"
    )

"""The kinds of storage objects that the plugins read."""

from collections.abc import Callable
from typing import Any, Final

from alnair.kube import resources, storage
from alnair.kube.resources import Resource

#: Where they are, with their narrow type, and their projector.
STORAGE: Final[tuple[tuple[Resource[Any], Callable[[Any], Any]], ...]] = (
    (resources.CLAIMS.typed(storage.ClaimWire), storage.project_claim),
    (
        resources.PERSISTENT_VOLUMES.typed(storage.PersistentVolumeWire),
        storage.project_volume,
    ),
    (resources.STORAGE_CLASSES.typed(storage.StorageClassWire), storage.project_class),
    (resources.CSI_NODES.typed(storage.CsiNodeWire), storage.project_csi_node),
    (resources.CSI_DRIVERS.typed(storage.DriverWire), storage.project_driver),
    (resources.CSI_CAPACITIES.typed(storage.CapacityWire), storage.project_capacity),
    (resources.VOLUME_ATTACHMENTS.typed(storage.AttachmentWire), storage.project_attachment),
)

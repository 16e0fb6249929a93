"""Storage objects as they come over the wire, and what scheduling keeps of them.

Nothing here raises: a quantity that cannot be read counts as 0, as if it were absent.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from alnair.kube.objects import wire
from alnair.kube.objects.disks import named_disk
from alnair.kube.objects.selectors_and_affinity import label_selector
from alnair.model import quantity, volumes
from alnair.model.volumes import Disk
from alnair.model.workload import Requirement, Term

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_ZONES: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


class ClaimSpec(Struct, rename="camel", gc=False):
    """Specification of a claim."""

    access_modes: list[str] | None = None
    resources: wire.ResourceRequirements | None = None
    selector: wire.LabelSelectorWire | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str | None = None


class Phase(Struct, gc=False):
    """Status of a claim or a persistent volume."""

    phase: str | None = None


class ClaimWire(Struct):
    """A PersistentVolumeClaim."""

    metadata: wire.ObjectMeta
    spec: ClaimSpec = field(default_factory=ClaimSpec)
    status: Phase | None = None


class ClaimReference(Struct, gc=False):
    """The claim of a persistent volume."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Struct, gc=False):
    """Nodes that can reach a persistent volume."""

    required: wire.NodeSelector | None = None


class PersistentVolumeSpec(wire.VolumeWire, rename="camel", gc=False):
    """Specification of a persistent volume; it names its disk as a pod's volume does."""

    access_modes: list[str] | None = None
    capacity: wire.Quantities | None = None
    claim_ref: ClaimReference | None = None
    csi: wire.DiskWire | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None


class PersistentVolumeWire(Struct):
    """A PersistentVolume."""

    metadata: wire.ObjectMeta
    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: Phase | None = None


class TopologyTerm(Struct, rename="camel", gc=False):
    """Where a class provisions volumes."""

    match_label_expressions: list["TopologyRequirement"] | None = None


class TopologyRequirement(Struct, gc=False):
    """A label that must have one of these values."""

    key: str
    values: list[str]


class StorageClassWire(Struct, rename="camel"):
    """A StorageClass."""

    metadata: wire.ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] | None = None


class DriverSpec(Struct, rename="camel", gc=False):
    """Specification of a CSIDriver."""

    storage_capacity: bool | None = None


class DriverWire(Struct):
    """A CSIDriver."""

    metadata: wire.ObjectMeta
    spec: DriverSpec = field(default_factory=DriverSpec)


class CapacityWire(Struct, rename="camel"):
    """A CSIStorageCapacity."""

    metadata: wire.ObjectMeta
    storage_class_name: str = ""
    capacity: str | int | None = None
    maximum_volume_size: str | int | None = None
    node_topology: wire.LabelSelectorWire | None = None


class Allocatable(Struct, gc=False):
    """How many volumes a driver can attach."""

    count: int | None = None


class NodeDriver(Struct, gc=False):
    """A driver on a node."""

    name: str
    allocatable: Allocatable | None = None


class CsiNodeSpec(Struct, gc=False):
    """Specification of a CSINode."""

    drivers: list[NodeDriver] | None = None


class CsiNodeWire(Struct):
    """A CSINode."""

    metadata: wire.ObjectMeta
    spec: CsiNodeSpec = field(default_factory=CsiNodeSpec)


class AttachmentSource(Struct, rename="camel", gc=False):
    """What is attached."""

    persistent_volume_name: str | None = None


class AttachmentSpec(Struct, rename="camel", gc=False):
    """Specification of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = field(default_factory=AttachmentSource)


class AttachmentWire(Struct):
    """A VolumeAttachment."""

    metadata: wire.ObjectMeta
    spec: AttachmentSpec = field(default_factory=AttachmentSpec)


def project_claim(claim: ClaimWire) -> volumes.PersistentVolumeClaim:
    """Return the claim as scheduling sees it."""
    meta, spec = claim.metadata, claim.spec
    annotations = meta.annotations or {}
    requests = spec.resources.requests if spec.resources else None
    return volumes.PersistentVolumeClaim(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        storage_class=annotations.get(_CLASS, spec.storage_class_name or ""),
        size=_bytes((requests or {}).get("storage")),
        modes=tuple(spec.access_modes or ()),
        block=spec.volume_mode == "Block",
        selector=label_selector(spec.selector),
        attributes_class=spec.volume_attributes_class_name or "",
        volume=spec.volume_name or "",
        bound=bool(spec.volume_name) and BIND_COMPLETED in annotations,
        selected_node=annotations.get(SELECTED_NODE, ""),
        lost=claim.status is not None and claim.status.phase == "Lost",
        deleting=meta.deletion_timestamp is not None,
        owner=next((o.uid for o in meta.owner_references or () if o.controller), ""),
    )


def project_volume(volume: PersistentVolumeWire) -> volumes.PersistentVolume:
    """Return the persistent volume as scheduling sees it."""
    meta, spec = volume.metadata, volume.spec
    labels = meta.labels or {}
    reference = spec.claim_ref
    required = spec.node_affinity.required if spec.node_affinity else None
    return volumes.PersistentVolume(
        name=meta.name,
        storage_class=(meta.annotations or {}).get(_CLASS, spec.storage_class_name or ""),
        size=_bytes((spec.capacity or {}).get("storage")),
        modes=tuple(spec.access_modes or ()),
        block=spec.volume_mode == "Block",
        labels=tuple(sorted(labels.items())),
        nodes=None
        if required is None
        else tuple(_term(t.match_expressions) for t in required.node_selector_terms or ()),
        attributes_class=spec.volume_attributes_class_name or "",
        claim=(reference.namespace, reference.name) if reference else None,
        claim_uid=reference.uid if reference else "",
        available=volume.status is not None and volume.status.phase == "Available",
        deleting=meta.deletion_timestamp is not None,
        disk=_disk(spec, labels),
    )


def project_class(found: StorageClassWire) -> volumes.StorageClass:
    """Return the storage class as scheduling sees it."""
    return volumes.StorageClass(
        name=found.metadata.name,
        provisioner=found.provisioner,
        binding_mode=found.volume_binding_mode or "",
        topologies=tuple(
            Term(
                tuple(
                    Requirement(r.key, "In", tuple(r.values))
                    for r in term.match_label_expressions or ()
                )
            )
            for term in found.allowed_topologies or ()
        ),
    )


def project_driver(driver: DriverWire) -> volumes.StorageDriver:
    """Return the driver as scheduling sees it."""
    return volumes.StorageDriver(driver.metadata.name, bool(driver.spec.storage_capacity))


def project_capacity(capacity: CapacityWire) -> volumes.StorageCapacity:
    """Return the capacity as scheduling sees it."""
    most = capacity.maximum_volume_size
    # Without either the driver says that there is nothing; -1 holds no volume of any size.
    limit = most if most is not None else capacity.capacity
    return volumes.StorageCapacity(
        storage_class=capacity.storage_class_name,
        largest=-1 if limit is None else _bytes(limit),
        nodes=label_selector(capacity.node_topology),
    )


def project_csi_node(node: CsiNodeWire) -> volumes.StorageNode:
    """Return the node's drivers as scheduling sees them."""
    return volumes.StorageNode(
        name=node.metadata.name,
        limits=tuple(
            (d.name, d.allocatable.count)
            for d in node.spec.drivers or ()
            if d.allocatable is not None and d.allocatable.count is not None
        ),
    )


def project_attachment(attachment: AttachmentWire) -> volumes.Attachment:
    """Return the attachment as scheduling sees it."""
    spec = attachment.spec
    return volumes.Attachment(
        spec.attacher, spec.node_name, spec.source.persistent_volume_name or ""
    )


def _bytes(amount: str | int | None) -> int:
    try:
        return quantity.value(amount or 0)
    except quantity.QuantityError:
        return 0


def _term(expressions: Iterable[wire.SelectorRequirement] | None) -> Term:
    return Term(
        tuple(Requirement(e.key, e.operator, tuple(e.values or ())) for e in expressions or ())
    )


def _disk(spec: PersistentVolumeSpec, labels: dict[str, str]) -> Disk | None:
    if spec.csi is not None:
        return Disk(spec.csi.driver, spec.csi.volume_handle)
    named = named_disk(spec)
    if named is None or named[0] not in volumes.CSI_DRIVERS:
        return None
    plugin, _, name = named
    zone = next((labels[key] for key in _ZONES if key in labels), "")
    return Disk(plugin, volumes.csi_handle(plugin, name, zone))

"""Storage as scheduling sees it: claims, persistent volumes, classes, limits of nodes."""

from typing import Final

import msgspec

from alnair.model.workload import LabelSelector, Term

#: What a volume is, if it is a claim and not a disk that the pod names itself.
CLAIM: Final = "claim"
EPHEMERAL: Final = "ephemeral"
#: Disks that pods name themselves: the names of the plugins that were in Kubernetes' tree.
AWS_EBS: Final = "kubernetes.io/aws-ebs"
AZURE_DISK: Final = "kubernetes.io/azure-disk"
CINDER: Final = "kubernetes.io/cinder"
GCE_PD: Final = "kubernetes.io/gce-pd"
ISCSI: Final = "kubernetes.io/iscsi"
PORTWORX: Final = "kubernetes.io/portworx-volume"
RBD: Final = "kubernetes.io/rbd"

#: CSI drivers that took over from plugins in Kubernetes' tree. Source:
#: `k8s.io/csi-translation-lib/plugins`.
CSI_DRIVERS: Final = {
    AWS_EBS: "ebs.csi.aws.com",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    GCE_PD: "pd.csi.storage.gke.io",
    PORTWORX: "pxd.portworx.com",
}

#: (namespace, name) of a claim.
ClaimKey = tuple[str, str]


class Disk(msgspec.Struct, frozen=True, gc=False):
    """A disk behind a volume.

    `driver` is a CSI driver, or one of the names above; `handle` is unique for that driver.
    """

    driver: str
    handle: str


class PersistentVolumeClaim(msgspec.Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim; `size` is in bytes."""

    namespace: str
    name: str
    uid: str = ""
    storage_class: str = ""
    size: int = 0
    modes: tuple[str, ...] = ()
    block: bool = False
    #: Labels that a volume must have; None = any volume will do.
    selector: LabelSelector | None = None
    attributes_class: str = ""
    #: The persistent volume that it names, or empty.
    volume: str = ""
    #: Both sides are bound to each other.
    bound: bool = False
    #: The node that a volume is provisioned for, or empty.
    selected_node: str = ""
    lost: bool = False
    deleting: bool = False
    #: Uid of the pod that controls it, or empty.
    owner: str = ""


class PersistentVolume(msgspec.Struct, frozen=True, gc=False):
    """A PersistentVolume; `size` is in bytes."""

    name: str
    storage_class: str = ""
    size: int = 0
    modes: tuple[str, ...] = ()
    block: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    #: Nodes that can reach it, as in a pod's required node affinity; None = all.
    nodes: tuple[Term, ...] | None = None
    attributes_class: str = ""
    #: The claim that it is bound to or reserved for, and its uid if that is said.
    claim: ClaimKey | None = None
    claim_uid: str = ""
    available: bool = False
    deleting: bool = False
    #: None if it is of no kind whose number per node is limited.
    disk: Disk | None = None


class StorageClass(msgspec.Struct, frozen=True, gc=False):
    """A StorageClass."""

    name: str
    provisioner: str = ""
    #: `Immediate` or `WaitForFirstConsumer`; empty if it does not say.
    binding_mode: str = ""
    #: Any of these terms must hold where a volume is provisioned; none = anywhere.
    topologies: tuple[Term, ...] = ()


class StorageDriver(msgspec.Struct, frozen=True, gc=False):
    """A CSIDriver; `checks_capacity` = nodes need enough storage for what it provisions."""

    name: str
    checks_capacity: bool = False


class StorageCapacity(msgspec.Struct, frozen=True, gc=False):
    """A CSIStorageCapacity: the largest volume of a class (bytes) that some nodes can get."""

    storage_class: str
    largest: int = 0
    #: Nodes that can get it; None = none.
    nodes: LabelSelector | None = None


class StorageNode(msgspec.Struct, frozen=True, gc=False):
    """A CSINode: how many volumes of each driver the node of that name can attach."""

    name: str
    limits: tuple[tuple[str, int], ...] = ()


class Attachment(msgspec.Struct, frozen=True, gc=False):
    """A VolumeAttachment: a persistent volume that is attached to a node, or soon will be."""

    driver: str
    node: str
    volume: str


class ClaimBinding(msgspec.Struct, frozen=True, gc=False):
    """What is written before a pod with an unbound claim is bound.

    The claim gets the persistent `volume`; if that is empty, one is provisioned for the node.
    """

    namespace: str
    name: str
    uid: str
    volume: str = ""


def csi_handle(plugin: str, name: str, zone: str = "") -> str:
    """Return the handle that the CSI driver of an in-tree plugin has for its disk.

    Source: `k8s.io/csi-translation-lib/plugins`, of which only what makes handles equal matters.
    """
    if plugin == AWS_EBS and name.startswith("aws://"):
        return name.rpartition("/")[2]
    if plugin == GCE_PD:
        where = "regions" if "__" in zone else "zones"
        return f"projects/UNSPECIFIED/{where}/{zone or 'UNSPECIFIED'}/disks/{name}"
    return name

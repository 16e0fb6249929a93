"""Which kinds exist, where they live under the API server's root, and how they are decoded.

A `Resource` is a value; its type parameter says what an object of it decodes to. The constants
below decode to plain dicts; `PODS.typed(MyPod)` is the same resource decoded to a narrow msgspec
Struct, which skips every unread byte.
"""

import builtins
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast
from urllib.parse import quote

T = TypeVar("T")
U = TypeVar("U")

#: A whole object as plain JSON values.
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """One kind of one API version.

    Attributes:
        group: API group, "" for the core group.
        version: API version, such as "v1".
        plural: Name in the URL.
        kind: Name in the object.
        namespaced: Whether objects live in namespaces.
        type: What an object decodes to.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    type: type[T]

    @property
    def api_version(self) -> str:
        """The value of `apiVersion` in a manifest."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def typed(self, kind: builtins.type[U]) -> "Resource[U]":
        """Return the same resource, decoded to another type."""
        return cast("Resource[U]", replace(self, type=cast("Any", kind)))

    def collection(self, namespace: str | None = None) -> str:
        """Path of the collection: of one namespace, or of the whole cluster."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace and self.namespaced:
            return f"{root}/namespaces/{_segment(namespace)}/{self.plural}"
        return f"{root}/{self.plural}"

    def item(self, name: str, namespace: str | None = None, subresource: str | None = None) -> str:
        """Path of one object or of a subresource of it.

        Raises:
            ValueError: The name cannot be one (an empty one would address the collection), or the
                namespace is missing.
        """
        if self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name!r} lives in a namespace: say which")
        path = f"{self.collection(namespace)}/{_segment(name)}"
        return f"{path}/{subresource}" if subresource else path


def _segment(name: str) -> str:
    """Check a name as Kubernetes does (IsValidPathSegmentName) and escape it."""
    if name in ("", ".", "..") or "/" in name or "%" in name:
        raise ValueError(f"{name!r} cannot be the name of an object")
    return quote(name, safe=":")


def core(plural: str, kind: str, *, namespaced: bool = True) -> Resource[Manifest]:
    """Declare a kind of the core group, `v1`."""
    return Resource("", "v1", plural, kind, namespaced, Manifest)


def grouped(
    group: str, version: str, plural: str, kind: str, *, namespaced: bool = True
) -> Resource[Manifest]:
    """Declare a kind of a named group, built in or custom."""
    return Resource(group, version, plural, kind, namespaced, Manifest)


PODS = core("pods", "Pod")
NODES = core("nodes", "Node", namespaced=False)
NAMESPACES = core("namespaces", "Namespace", namespaced=False)
EVENTS = core("events", "Event")
CONFIGMAPS = core("configmaps", "ConfigMap")
SECRETS = core("secrets", "Secret")
SERVICES = core("services", "Service")
REPLICATION_CONTROLLERS = core("replicationcontrollers", "ReplicationController")
DEPLOYMENTS = grouped("apps", "v1", "deployments", "Deployment")
DAEMON_SETS = grouped("apps", "v1", "daemonsets", "DaemonSet")
REPLICA_SETS = grouped("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = grouped("apps", "v1", "statefulsets", "StatefulSet")
SERVICE_ACCOUNTS = core("serviceaccounts", "ServiceAccount")
TOKEN_REVIEWS = grouped(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
ACCESS_REVIEWS = grouped(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
JOBS = grouped("batch", "v1", "jobs", "Job")
LEASES = grouped("coordination.k8s.io", "v1", "leases", "Lease")
PRIORITY_CLASSES = grouped(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False
)
DISRUPTION_BUDGETS = grouped("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
CRDS = grouped(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
CLUSTER_ROLES = grouped(
    "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False
)
CLUSTER_ROLE_BINDINGS = grouped(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
ROLES = grouped("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = grouped("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


def _admission(plural: str, kind: str) -> Resource[Manifest]:
    return grouped("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False)


MUTATING_POLICIES = _admission("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
MUTATING_POLICY_BINDINGS = _admission(
    "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"
)
VALIDATING_POLICIES = _admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
VALIDATING_POLICY_BINDINGS = _admission(
    "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
)
CLAIMS = core("persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES = core("persistentvolumes", "PersistentVolume", namespaced=False)


def _storage(plural: str, kind: str, *, namespaced: bool = False) -> Resource[Manifest]:
    return grouped("storage.k8s.io", "v1", plural, kind, namespaced=namespaced)


STORAGE_CLASSES = _storage("storageclasses", "StorageClass")
CSI_NODES = _storage("csinodes", "CSINode")
CSI_DRIVERS = _storage("csidrivers", "CSIDriver")
CSI_CAPACITIES = _storage("csistoragecapacities", "CSIStorageCapacity", namespaced=True)
VOLUME_ATTACHMENTS = _storage("volumeattachments", "VolumeAttachment")
PODGROUPS = grouped("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
#: The group's older name, which the original Alnair and Koordinator use.
LEGACY_PODGROUPS = grouped("scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup")
ELASTIC_QUOTAS = grouped("scheduling.x-k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota")
#: The topology exporters' kind; its objects carry the node's name.
NODE_RESOURCE_TOPOLOGIES = grouped(
    "topology.node.k8s.io",
    "v1alpha2",
    "noderesourcetopologies",
    "NodeResourceTopology",
    namespaced=False,
)
ELASTIC_HOROVOD_JOBS = grouped(
    "ai.centauruscloud.io", "v1alpha1", "elastichorovodjobs", "ElasticHorovodJob"
)
HOROVOD_JOBS = grouped("ai.centauruscloud.io", "v1alpha1", "horovodjobs", "HorovodJob")
ELASTIC_TORCH_JOBS = grouped(
    "ai.centauruscloud.io", "v1alpha1", "elastictorchjobs", "ElasticTorchJob"
)
JOBS = grouped("batch", "v1", "jobs", "Job")
NETWORK_POLICIES = grouped("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")

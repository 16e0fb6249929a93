"""API objects as they come over the wire: only the fields that are read, all else is skipped.

msgspec skips unknown fields without building them, which makes decoding several times cheaper than
generated models. The modules `*_projection` beside this one turn these into the nouns of
`alnair.model`.
"""

from msgspec import Struct, field

Quantities = dict[str, str | int]


class OwnerReference(Struct, rename="camel", gc=False):
    """What an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Struct, rename="camel"):
    """Metadata of any object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class ResourceRequirements(Struct, gc=False):
    """Requests and limits."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(Struct, rename="camel", gc=False):
    """A port of a container."""

    container_port: int = 0
    host_port: int | None = None
    protocol: str | None = None
    host_ip: str | None = field(default=None, name="hostIP")


class Container(Struct, rename="camel", gc=False):
    """A container or an init container."""

    name: str = ""
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    image: str | None = None
    ports: list[ContainerPort] | None = None


class TolerationWire(Struct, rename="camel", gc=False):
    """A toleration of a pod."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class SelectorRequirement(Struct, gc=False):
    """A requirement of a node selector term."""

    key: str
    operator: str
    values: list[str] | None = None


class SelectorTerm(Struct, rename="camel", gc=False):
    """A node selector term."""

    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class PreferredTerm(Struct, gc=False):
    """A weighted node selector term."""

    weight: int
    preference: SelectorTerm


class NodeSelector(Struct, rename="camel", gc=False):
    """Node selector terms, any of which must match."""

    node_selector_terms: list[SelectorTerm] | None = None


class NodeAffinityWire(Struct, gc=False):
    """Node affinity of a pod."""

    required: NodeSelector | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredTerm] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class LabelSelectorWire(Struct, rename="camel", gc=False):
    """A selector of labels."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorRequirement] | None = None


class PodAffinityTermWire(Struct, rename="camel", gc=False):
    """A term of inter-pod affinity."""

    topology_key: str = ""
    label_selector: LabelSelectorWire | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelectorWire | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Struct, rename="camel", gc=False):
    """A weighted term of inter-pod affinity."""

    weight: int
    pod_affinity_term: PodAffinityTermWire


class PodAffinityWire(Struct, gc=False):
    """Inter-pod affinity or anti-affinity of a pod."""

    required: list[PodAffinityTermWire] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct, rename="camel", gc=False):
    """Affinity of a pod."""

    node_affinity: NodeAffinityWire | None = None
    pod_affinity: PodAffinityWire | None = None
    pod_anti_affinity: PodAffinityWire | None = None


class SpreadConstraintWire(Struct, rename="camel", gc=False):
    """A topology spread constraint of a pod."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelectorWire | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class SchedulingGroup(Struct, rename="camel", gc=False):
    """The PodGroup of the API `scheduling.k8s.io` that a pod belongs to."""

    pod_group_name: str | None = None


class SchedulingGate(Struct, gc=False):
    """A gate that holds a pod back from scheduling."""

    name: str = ""


class DiskWire(Struct, rename="camel", gc=False):
    """A disk of any plugin; each plugin names it by other fields."""

    volume_id: str = field(default="", name="volumeID")
    pd_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    iqn: str = ""
    pool: str = "rbd"
    image: str = ""
    monitors: list[str] | None = None
    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class ClaimSource(Struct, rename="camel", gc=False):
    """The claim of a volume; an ephemeral volume has no name here."""

    claim_name: str = ""


class ImageSource(Struct, gc=False):
    """An image that is mounted."""

    reference: str = ""


class VolumeWire(Struct, rename="camel", gc=False):
    """A volume of a pod, if its kind can keep the pod from a node."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: ClaimSource | None = None
    aws_elastic_block_store: DiskWire | None = None
    azure_disk: DiskWire | None = None
    cinder: DiskWire | None = None
    gce_persistent_disk: DiskWire | None = None
    iscsi: DiskWire | None = None
    portworx_volume: DiskWire | None = None
    rbd: DiskWire | None = None
    image: ImageSource | None = None


class ResourceClaimWire(Struct, gc=False):
    """A claim for devices, by dynamic resource allocation; only that it is there counts."""

    name: str = ""


class PodSpecWire(Struct, rename="camel"):
    """Specification of a pod."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: ResourceRequirements | None = None
    overhead: Quantities | None = None
    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[TolerationWire] | None = None
    scheduler_name: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    active_deadline_seconds: int | None = None
    topology_spread_constraints: list[SpreadConstraintWire] | None = None
    scheduling_group: SchedulingGroup | None = None
    volumes: list[VolumeWire] | None = None
    host_network: bool | None = None
    resource_claims: list[ResourceClaimWire] | None = None


class PodCondition(Struct, rename="camel", gc=False):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    last_transition_time: str | None = None


class PodStatusWire(Struct, rename="camel"):
    """Status of a pod."""

    phase: str | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    conditions: list[PodCondition] | None = None


class PodWire(Struct):
    """A pod."""

    metadata: ObjectMeta
    spec: PodSpecWire
    status: PodStatusWire | None = None


class TaintWire(Struct, gc=False):
    """A taint of a node."""

    key: str
    effect: str
    value: str | None = None


class NodeSpecWire(Struct):
    """Specification of a node."""

    taints: list[TaintWire] | None = None
    unschedulable: bool | None = None


class ImageWire(Struct, rename="camel", gc=False):
    """A container image on a node."""

    names: list[str] | None = None
    size_bytes: int | None = None


class NodeStatusWire(Struct):
    """Status of a node."""

    allocatable: Quantities | None = None
    images: list[ImageWire] | None = None


class NodeWire(Struct):
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpecWire | None = None
    status: NodeStatusWire | None = None


class NamespaceWire(Struct):
    """A namespace."""

    metadata: ObjectMeta


class ElasticQuotaSpecWire(Struct):
    """Bounds of a quota."""

    min: Quantities | None = None
    max: Quantities | None = None


class ElasticQuotaWire(Struct):
    """A quota of a namespace."""

    metadata: ObjectMeta
    spec: ElasticQuotaSpecWire | None = None


class BudgetSpecWire(Struct, gc=False):
    """Specification of a PodDisruptionBudget."""

    selector: LabelSelectorWire | None = None


class BudgetStatusWire(Struct, rename="camel", gc=False):
    """Status of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class BudgetWire(Struct):
    """A PodDisruptionBudget."""

    metadata: ObjectMeta
    spec: BudgetSpecWire | None = None
    status: BudgetStatusWire | None = None


class LeaseSpecWire(Struct, rename="camel"):
    """What a lease says."""

    renew_time: str | None = None


class LeaseWire(Struct):
    """A lease."""

    metadata: ObjectMeta
    spec: LeaseSpecWire | None = None

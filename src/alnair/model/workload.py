"""What is to be placed: pods reduced to what scheduling needs, and gangs of them."""

import msgspec


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """A toleration; `operator` is Exists, Equal, Lt or Gt, an empty key or effect matches any."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """A requirement of a node selector; `operator` is In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(msgspec.Struct, frozen=True, gc=False):
    """A node selector term: all its requirements hold; one without requirements matches nothing."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class Preference(msgspec.Struct, frozen=True, gc=False):
    """A preferred node selector term and its weight (1-100)."""

    weight: int
    term: Term


class NodeAffinity(msgspec.Struct, frozen=True, gc=False):
    """Node affinity: any of `required` (None = no condition), as many of `preferred` as can be."""

    required: tuple[Term, ...] | None = None
    preferred: tuple[Preference, ...] = ()


class LabelSelector(msgspec.Struct, frozen=True, gc=False):
    """A selector of labels: all requirements hold; without requirements it matches everything.

    Where Kubernetes has no selector at all, which matches nothing, there is None instead of one.
    """

    requirements: tuple[Requirement, ...] = ()


class SpreadConstraint(msgspec.Struct, frozen=True, gc=False):
    """A topology spread constraint; `hard` is DoNotSchedule, else it is ScheduleAnyway."""

    max_skew: int
    topology_key: str
    hard: bool
    selector: LabelSelector | None = None
    min_domains: int | None = None
    #: Only nodes that the pod's node selector and affinity accept count (nodeAffinityPolicy).
    honor_affinity: bool = True
    #: Only nodes whose taints the pod tolerates count (nodeTaintsPolicy).
    honor_taints: bool = False
    match_label_keys: tuple[str, ...] = ()


class PodTerm(msgspec.Struct, frozen=True, gc=False):
    """A term of inter-pod affinity or anti-affinity; `weight` counts for preferred ones.

    Without `namespaces` and `namespace_selector` it is about pods of its holder's namespace.
    """

    topology_key: str
    selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    weight: int = 0
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PodAffinity(msgspec.Struct, frozen=True, gc=False):
    """Inter-pod affinity and anti-affinity."""

    required: tuple[PodTerm, ...] = ()
    preferred: tuple[PodTerm, ...] = ()
    anti_required: tuple[PodTerm, ...] = ()
    anti_preferred: tuple[PodTerm, ...] = ()


#: Labels as a sorted tuple.
Labels = tuple[tuple[str, str], ...]
#: Kind and name of the ReplicaSet, ReplicationController or StatefulSet that a pod belongs to.
Controller = tuple[str, str]


class GpuRequest(msgspec.Struct, frozen=True, gc=False):
    """What one container asks of GPUs: `whole` ones, or a slice of one (MiB, percent)."""

    container: str
    whole: int = 0
    memory_mib: int = 0
    compute: int = 0
    #: An init container that ends before the containers start; it uses the same GPUs.
    init: bool = False


class GpuDemand(msgspec.Struct, frozen=True, gc=False):
    """What a pod asks of the GPUs of one node.

    Its whole GPUs are its own; all its slices lie on **one** further GPU. `whole`, `memory_mib` and
    `compute` are the most that is in use at once, over the init containers and the containers.
    """

    requests: tuple[GpuRequest, ...] = ()
    whole: int = 0
    memory_mib: int = 0
    compute: int = 0
    #: Compute is a hard limit: such shares never add up to more than the GPU. Snapshots hold this
    #: field; code reads `soft`.
    hard: bool = True
    #: GPU models that will do; empty = any.
    models: tuple[str, ...] = ()
    #: GPU models that will not do.
    models_not: tuple[str, ...] = ()
    #: How much GPU models are liked, 1-100; others 0. Pairs.
    weights: tuple[tuple[str, int], ...] = ()
    #: Why no cluster could ever satisfy this; empty if one could.
    problem: str = ""
    #: On its GPU its slices yield to those of pods without this.
    low_priority: bool = False
    #: Its slices run in the node's MPS server.
    mps: bool = False
    #: Its containers may have memory of the host beyond their slices.
    swap: bool = False
    #: MiB of it that each of them may have; 0: as much as its slice.
    host_memory_mib: int = 0
    #: They may have more of the GPU than their slices while nobody was granted it.
    borrows: bool = False

    def swap_mib(self, slice_mib: int) -> int:
        """Return the MiB of the host's memory that a container with such a slice may have."""
        return (self.host_memory_mib or slice_mib) if self.swap else 0

    @property
    def soft(self) -> bool:
        """Whether compute may exceed the share while others leave some."""
        return not self.hard

    @property
    def restricts_models(self) -> bool:
        """Whether some models will not do."""
        return bool(self.models or self.models_not)

    def accepts(self, model: str) -> bool:
        """Return whether a GPU of this model will do."""
        return model not in self.models_not and (not self.models or model in self.models)

    def init_containers(self) -> frozenset[str]:
        """Return the names of the containers that have ended when the others run."""
        return frozenset(r.container for r in self.requests if r.init)


class ContainerPart(msgspec.Struct, frozen=True, gc=False):
    """What one container requests, sorted by resource, in base units; init containers come first.

    A sidecar is an init container that keeps running.
    """

    requests: tuple[tuple[str, int], ...] = ()
    init: bool = False
    sidecar: bool = False


class PodVolume(msgspec.Struct, frozen=True, gc=False):
    """A volume of a pod that its feasible nodes depend on.

    `kind` is one of those in `alnair.model.volumes`; `name` is that of the claim, or what makes the
    disk the same as another one.
    """

    kind: str
    name: str
    read_only: bool = False
    #: Of an ephemeral volume: name and uid of the pod that its claim must belong to.
    pod: str = ""
    uid: str = ""
    #: Ceph monitors of an RBD image.
    monitors: tuple[str, ...] = ()


class HostPort(msgspec.Struct, frozen=True, gc=False):
    """A port of the host that a pod asks for; the address 0.0.0.0 stands for all of the host's."""

    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"


class PodSpec(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """All of a pod that its feasible nodes and their scores depend on.

    Pods with equal specs form one class. `requests` is sorted by resource, in base units, without
    zeros, and includes `pods: 1`. `namespace`, `labels` and `controller` are empty as read from the
    API; the scheduler fills in what of them matters (`alnair.scheduler.state.pods.pod_classes`).
    """

    requests: tuple[tuple[str, int], ...] = ()
    #: cpu (millicores) and memory (bytes) that scoring assumes, 100m and 200 MiB per silent
    #: container.
    scored_cpu: int = 0
    scored_memory: int = 0
    node_name: str = ""
    node_selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeAffinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    gpu: GpuDemand | None = None
    spread: tuple[SpreadConstraint, ...] = ()
    pod_affinity: PodAffinity | None = None
    volumes: tuple[PodVolume, ...] = ()
    #: Percent of one GPU's time, and MiB of its memory, that the pod is expected to use; 0 if
    #: nobody knows.
    expected_util: float = 0.0
    expected_memory_mib: int = 0
    #: What the pod computes, by the names of measured pairs; empty if nobody says.
    workload: str = ""
    namespace: str = ""
    labels: Labels = ()
    #: Its QoS class is Guaranteed: its containers may get cores and memory of their own.
    guaranteed: bool = False
    #: Its containers, where `requests` does not tell: empty for a single one that asks for all.
    containers: tuple[ContainerPart, ...] = ()
    controller: Controller | None = None
    ports: tuple[HostPort, ...] = ()
    #: Images with their tags, one per container and image volume, sorted; number of containers.
    images: tuple[str, ...] = ()
    image_containers: int = 0


class GpuPart(msgspec.Struct, frozen=True, gc=False):
    """A container's part of one GPU, as written into the `gpu-assignment` annotation.

    A whole GPU has all of its memory, 100 percent, and `whole`.
    """

    uuid: str
    index: int
    memory_mib: int
    compute: int
    whole: bool


#: Container name → its parts of GPUs.
PodGpuAssignment = tuple[tuple[str, tuple[GpuPart, ...]], ...]


class GangTopology(msgspec.Struct, frozen=True, gc=False):
    """How near to each other the pods of a gang shall be, by keys of node labels.

    Nodes with the same value of a key are one domain of that level.
    """

    #: All pods lie in one domain of this level; empty = anywhere.
    required: str = ""
    #: If that can be had, in one domain of the first of these levels, or else of the next.
    preferred: tuple[str, ...] = ()


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod; `created` is in seconds since the epoch."""

    uid: str
    namespace: str
    name: str
    spec: PodSpec
    scheduler: str
    created: float
    priority: int = 0
    #: The node it is bound to, or empty.
    node: str = ""
    #: When it was bound, seconds since the epoch; 0 if that is not known.
    bound_at: float = 0.0
    #: Seconds after which it ends: at the latest (activeDeadlineSeconds) or as expected; 0 if
    #: nobody knows.
    time_limit: int = 0
    #: Succeeded or Failed: it holds nothing any more.
    finished: bool = False
    deleting: bool = False
    #: Scheduling gates are present: it must not be considered.
    gated: bool = False
    #: Name of its PodGroup (same namespace), or empty.
    group: str = ""
    labels: Labels = ()
    controller: Controller | None = None
    #: What it asks of its gang's topology; the PodGroup's own word goes first.
    topology: GangTopology | None = None
    assignment: PodGpuAssignment = ()
    #: Why the pod's annotations or resources could not be read, for people; empty if they could.
    problem: str = ""
    #: Pods of lower priority may be evicted for it (preemptionPolicy is not Never).
    preempts: bool = True
    #: The node on which room is held for it after others were evicted, or empty.
    nominated: str = ""
    #: When its kubelet started it, seconds since the epoch; 0 if it did not.
    started: float = 0.0
    #: It is being deleted because a scheduler preempted it.
    preempted: bool = False
    #: Since when its GPUs have been measured idle, seconds since the epoch; 0 if they are not.
    idle_since: float = 0.0
    #: The owner's word on idle reclaim: `idle` (yes), `never`, or empty (as the profile says).
    reclaimable: str = ""
    #: When it last saved its work, seconds since the epoch; 0 if it does not say.
    saved_at: float = 0.0
    #: A controller owns it, so it is replaced when it is evicted.
    owned: bool = False
    #: It belongs to its node, as pods of DaemonSets and static pods do.
    daemon: bool = False
    #: Its owner lets it be moved to another node.
    evictable: bool = True
    #: What of its annotations was ignored, and why; empty if nothing was.
    ignored: str = ""


#: Where a member of a gang goes: its node, and per container the indices of its GPUs there.
Planned = tuple[str, dict[str, list[int]]]


class Gang(msgspec.Struct, frozen=True):
    """A PodGroup of any dialect: pods that are placed together or not at all."""

    namespace: str
    name: str
    min_member: int
    created: float
    timeout_seconds: int = 60
    #: The API that it was read from, such as `scheduling.x-k8s.io/v1alpha1`.
    api: str = ""
    #: What must be free in the whole cluster before it is tried, sorted, in base units.
    min_resources: tuple[tuple[str, int], ...] = ()
    topology: GangTopology | None = None
    #: Why the PodGroup could not be read, for people; empty if it could.
    problem: str = ""
    #: Pod name → (node, container → GPU indices): the plan that was written before the first bind.
    plan: dict[str, Planned] = {}
    #: When the plan was written, seconds since the epoch; 0 without one.
    planned: float = 0.0
    #: With how few members it goes on once it was placed; 0 = it is not elastic.
    elastic_min: int = 0
    #: All that must start together were placed once, as its status says.
    placed: bool = False

    @property
    def needed(self) -> int:
        """Pods that must be placed together, and below which it goes whole or not at all."""
        if self.elastic_min and self.placed:
            return min(self.elastic_min, self.min_member)
        return self.min_member

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
    #: Compute is a hard limit: such shares never add up to more than the GPU.
    hard: bool = True
    #: GPU models that will do; empty = any.
    models: tuple[str, ...] = ()
    #: Why no cluster could ever satisfy this; empty if one could.
    problem: str = ""


class PodSpec(msgspec.Struct, frozen=True, gc=False):
    """All of a pod that its feasible nodes and their scores depend on.

    Pods with equal specs form one class. `requests` is sorted by resource, in base units, without
    zeros, and includes `pods: 1`.
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


class GpuShare(msgspec.Struct, frozen=True, gc=False):
    """A container's part of one GPU, as written into the `gpu-assignment` annotation.

    A whole GPU has all of its memory, 100 percent, and `whole`.
    """

    uuid: str
    index: int
    memory_mib: int
    compute: int
    whole: bool


#: Container name → its parts of GPUs.
Assignment = tuple[tuple[str, tuple[GpuShare, ...]], ...]


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
    #: Succeeded or Failed: it holds nothing any more.
    finished: bool = False
    deleting: bool = False
    #: Scheduling gates are present: it must not be considered.
    gated: bool = False
    #: Name of its PodGroup (same namespace), or empty.
    group: str = ""
    assignment: Assignment = ()
    #: Why the pod's annotations or resources could not be read, for people; empty if they could.
    problem: str = ""


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
    #: Pod name → (node, container → GPU indices): the plan that was written before the first bind.
    plan: dict[str, Planned] = {}
    #: When the plan was written, seconds since the epoch; 0 without one.
    planned: float = 0.0

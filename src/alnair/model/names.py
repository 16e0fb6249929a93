"""The names that users know: resources, labels, annotations, schedulers."""

from typing import Final

SCHEDULER: Final = "alnair-scheduler"
COST_SAVING: Final = "alnair-cost-saving"
HIGH_PERFORMANCE: Final = "alnair-high-performance"
LOW_FRAGMENTATION: Final = "alnair-low-fragmentation"
IN_ORDER: Final = "alnair-in-order"
UTILSCHED: Final = "utilsched"
#: The scheduler names that are ours.
SCHEDULERS: Final = frozenset(
    (SCHEDULER, COST_SAVING, HIGH_PERFORMANCE, LOW_FRAGMENTATION, IN_ORDER, UTILSCHED)
)
#: The controller's lease, and who tells in its events.
CONTROLLER: Final = "alnair-controller"

GPU: Final = "nvidia.com/gpu"
#: Resources of MIG devices, each followed by a profile: `nvidia.com/mig-1g.10gb.me`.
MIG_PREFIX: Final = "nvidia.com/mig-"
#: MiB of one GPU.
VGPU_MEMORY: Final = "alnair/vgpu-memory"
#: Percent of one GPU, 1-100.
VGPU_COMPUTE: Final = "alnair/vgpu-compute"
#: The device-plugin resource whose slots carry `Allocate`; admission adds it.
VGPU: Final = "alnair/vgpu"
#: Slots of `alnair/vgpu` that a node offers per GPU.
VGPU_SLOTS: Final = 100
#: What a container asks for that shares a GPU.
SLICE_RESOURCES: Final = (VGPU_MEMORY, VGPU_COMPUTE)
#: What users write to ask for GPUs.
GPU_REQUESTS: Final = (GPU, *SLICE_RESOURCES)
#: The same, and what admission adds for a slice.
GPU_RESOURCES: Final = (*GPU_REQUESTS, VGPU)

GPU_MODEL_LABEL: Final = "nvidia.com/gpu.product"

_PREFIX = "ai.centaurus.io/"
GPU_STATIC: Final = _PREFIX + "gpu-static"
#: On a node, followed by the index of a GPU: what that GPU does (`api.GpuLoad`).
GPU_LOAD: Final = _PREFIX + "gpu-"
#: Label by which nodes opt in: on those that have it as `enabled`, the chart runs an agent.
AGENT_NODE: Final = _PREFIX + "agent"
#: Label of a namespace: `allowed` if its pods may reach into nodes.
HOST_ACCESS: Final = _PREFIX + "host-access"
#: Label of a node of a local cluster on which containers run, as a simulated one runs none.
REAL_NODE: Final = _PREFIX + "real-node"
#: On a node: the Lease of its agent, if it is not `alnair-agent-NODE`.
AGENT_LEASE: Final = _PREFIX + "agent-lease"
#: On a pod: what it will need of GPUs, and for how long (`api.Expected`).
EXPECTED: Final = _PREFIX + "expected"
#: On a pod or its controller, read by the simulator only: when it is submitted, in seconds.
SUBMIT_AT: Final = _PREFIX + "submit-at"
GPU_ASSIGNMENT: Final = _PREFIX + "gpu-assignment"
#: On a pod: the GPU models that it accepts, comma-separated.
GPU_MODELS: Final = _PREFIX + "gpu-models"
#: On a pod: the GPU models that it refuses, comma-separated.
GPU_MODELS_NOT: Final = _PREFIX + "gpu-models-not"
#: On a pod: how much it likes GPU models, `MODEL=1…100`, comma-separated.
GPU_MODEL_WEIGHTS: Final = _PREFIX + "gpu-model-weights"
#: On a pod: `hard` or `soft`, how its compute share is enforced.
VGPU_POLICY: Final = _PREFIX + "vgpu-policy"
#: On a pod: `low` if its slices yield to those of pods without it.
VGPU_PRIORITY: Final = _PREFIX + "vgpu-priority"
#: On a pod: `strict`, `swap` or `soft`, what becomes of allocations that slices have no room for.
VGPU_MEMORY_POLICY: Final = _PREFIX + "vgpu-memory-policy"
#: On a pod: MiB of the host's memory that each of its containers may have beyond its slice.
VGPU_HOST_MEMORY: Final = _PREFIX + "vgpu-host-memory"
#: On a pod: `true` while its slices are to rest in the host's memory.
VGPU_SUSPENDED: Final = _PREFIX + "vgpu-suspended"
#: On a pod: `mps` if it runs beside others in the node's MPS server.
VGPU_ISOLATION: Final = _PREFIX + "vgpu-isolation"
#: On a pod, by its node's agent: what its GPUs do (`api.PodUtilization`).
UTILIZATION: Final = _PREFIX + "utilization"
#: On a pod: what it does, as far as its use and its log tell (`api_types.Workload`).
WORKLOAD: Final = _PREFIX + "workload"
#: On a pod, by people: what it computes, by the names of the stored pairs (`model.pair_rates`).
WORKLOAD_KIND: Final = _PREFIX + "workload-kind"
#: On a pod, by people: `false` if its log is not read; and how its lines say how far it is.
READ_LOG: Final = _PREFIX + "read-log"
LOG_PATTERN: Final = _PREFIX + "log-pattern"
#: On a pod, by people: the name of its model (a label will do), how many parameters it has, and the
#: size of its weights, as quantities (8G, 15Gi).
MODEL: Final = _PREFIX + "model"
MODEL_PARAMETERS: Final = _PREFIX + "model-parameters"
MODEL_WEIGHTS: Final = _PREFIX + "model-weights"
#: On a pod with whole GPUs, by people: `true` if its calls of CUDA shall be counted.
COUNT_CALLS: Final = _PREFIX + "count-cuda-calls"
#: Label of a pod or its controller: whose work it is, in the history; without it the namespace's.
USER: Final = _PREFIX + "user"
#: On a pod: `idle` if it may be evicted while its GPUs are idle, `never` if not.
RECLAIMABLE: Final = _PREFIX + "reclaimable"
#: On a pod, or label of a namespace: `enabled` if it is evicted when it does not use its GPUs for
#: long; on a pod, `never` if not.
EVICT_IDLE: Final = _PREFIX + "evict-idle"
#: On a pod: when it last saved its work, RFC 3339: what came before is not lost by an eviction.
LAST_CHECKPOINT: Final = _PREFIX + "last-checkpoint"
#: On a pod: `false` if it must not be moved to another node.
EVICTABLE: Final = _PREFIX + "evictable"
#: On a PodGroup: where each member goes, written before the first of them is bound.
GANG_PLAN: Final = _PREFIX + "gang-plan"
#: On a PodGroup: with how few members it goes on once it was placed; until then `minMember` counts.
ELASTIC_MIN: Final = _PREFIX + "elastic-min"

#: On a PodGroup: the node label whose values are the domains in one of which all its pods must lie.
TOPOLOGY_REQUIRED: Final = _PREFIX + "topology-required"
#: On a PodGroup: such labels, comma-separated, the nearest first; tried in this order.
TOPOLOGY_PREFERRED: Final = _PREFIX + "topology-preferred"
#: The same on a pod, in Kueue's words.
KUEUE_TOPOLOGY_REQUIRED: Final = "kueue.x-k8s.io/podset-required-topology"
KUEUE_TOPOLOGY_PREFERRED: Final = "kueue.x-k8s.io/podset-preferred-topology"
#: A level without a slash, such as `rack`, means the label of this prefix.
TOPOLOGY_PREFIX: Final = "topology.kubernetes.io/"

#: The group of the custom resources of training jobs, as the original has it.
JOBS_GROUP: Final = "ai.centauruscloud.io"
#: Whose fields the parts of a training job are.
CONTROLLER_ELASTIC: Final = "alnair-controller-elastic"
#: Label of a training job's Service, ConfigMap and NetworkPolicy, with any value.
JOB_PART: Final = _PREFIX + "training-job-part"
#: On a training job's ConfigMap: since when it lists just these hosts, RFC 3339.
HOSTS_SINCE: Final = _PREFIX + "hosts-since"
#: On what the operator keeps for a training job: a digest of what it applied at last, so that the
#: next leader applies only what is to be otherwise.
APPLIED: Final = _PREFIX + "applied"
#: On a training job, by people: nodes that its workers are to leave, `NODE[,NODE][@TIME]`. On what
#: makes the workers: nodes that new ones keep away from, comma-separated.
LEAVE_NODES: Final = _PREFIX + "leave-nodes"
#: On a node: why rebalancing has cordoned it; without it, a cordon is somebody else's.
REBALANCING: Final = _PREFIX + "rebalancing"
#: On a launcher's pod: which hosts it shall see; a change has the kubelet bring them at once.
HOSTS_SEEN: Final = _PREFIX + "hosts"

POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
POD_GROUP_LABEL_LEGACY: Final = "pod-group.scheduling.sigs.k8s.io"

#: Condition of a pod: a container of it uses more of a GPU than its slice.
VGPU_VIOLATION: Final = "alnair/vgpu-violation"
#: Label of a node: the tiers that hold memory and compute of its slices, such as A-B.
VGPU_TIER: Final = _PREFIX + "vgpu-tier"
#: On a node: what these tiers promise, in words.
VGPU_PROMISE: Final = _PREFIX + "vgpu-promise"
#: Who tells in the events of a node's agent.
AGENT: Final = "alnair-agent"
#: Whose fields the annotations of measured load are.
AGENT_PROFILER: Final = "alnair-agent-profiler"
AGENT_WORKLOAD: Final = "alnair-agent-workload"

#: Whose fields the annotations of jobs are.
CONTROLLER_OWNERS: Final = "alnair-controller-owners"

NAMESPACE: Final = "alnair-system"
FIELD_MANAGER: Final = "alnair"

#: Leases of agents have this and the node's name.
AGENT_LEASE_PREFIX: Final = "alnair-agent-"

#: Carries the token of who asks through the API server's proxy, which takes `Authorization` away.
TOKEN_HEADER: Final = "X-Alnair-Token"
#: Whom such a token is for: the API server takes it for nothing else.
TOKEN_AUDIENCE: Final = "alnair"
#: The service account whose tokens read /debug and /metrics, for those who may make them.
DEBUG_ACCOUNT: Final = "alnair-debug"

#: On the Lease of the scheduler: what its holder keeps for others (`api_types.Holdings`).
HOLDINGS: Final = _PREFIX + "holdings"
#: On the same Lease: what the holder's plugins have learned, compressed, for the next one.
LEARNED: Final = _PREFIX + "learned"
#: On the Lease of the scheduler or the controller: where the leader serves its health and figures:
#: a URL, or of a pod its path at the API server.
METRICS_URL: Final = _PREFIX + "metrics-url"

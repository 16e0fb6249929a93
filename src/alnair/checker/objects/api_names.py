"""The names that the checker looks for, written down a second time: a slip in ours must show."""

from typing import Final

SCHEDULERS: Final = frozenset(
    {
        "alnair-scheduler",
        "alnair-cost-saving",
        "alnair-high-performance",
        "alnair-low-fragmentation",
        "alnair-in-order",
        "utilsched",
    }
)

WHOLE: Final = "nvidia.com/gpu"
MEMORY: Final = "alnair/vgpu-memory"
COMPUTE: Final = "alnair/vgpu-compute"
SLOTS: Final = "alnair/vgpu"

STATIC: Final = "ai.centaurus.io/gpu-static"
ASSIGNMENT: Final = "ai.centaurus.io/gpu-assignment"
MODELS: Final = "ai.centaurus.io/gpu-models"
MODELS_NOT: Final = "ai.centaurus.io/gpu-models-not"
POLICY: Final = "ai.centaurus.io/vgpu-policy"
MEMORY_POLICY: Final = "ai.centaurus.io/vgpu-memory-policy"
HOST_MEMORY: Final = "ai.centaurus.io/vgpu-host-memory"
#: Annotations with few values, and these.
CHOICES: Final = (
    (POLICY, ("hard", "soft")),
    ("ai.centaurus.io/vgpu-priority", ("low",)),
    ("ai.centaurus.io/vgpu-isolation", ("mps",)),
    (MEMORY_POLICY, ("strict", "swap", "soft")),
)
#: What a pod says of the GPUs that it asks for.
ABOUT_GPUS: Final = (MODELS, MODELS_NOT, HOST_MEMORY, *(name for name, _ in CHOICES))

#: On a PodGroup: with how few pods it goes on once it was placed.
ELASTIC_MIN: Final = "ai.centaurus.io/elastic-min"
#: On a PodGroup: the node label in one of whose domains all its pods lie.
TOPOLOGY_REQUIRED: Final = "ai.centaurus.io/topology-required"
#: A level without a slash is the rest of such a label.
TOPOLOGY_PREFIX: Final = "topology.kubernetes.io/"

#: The first that a pod carries names its group.
GROUP_LABELS: Final = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")

#: Reason of the condition DisruptionTarget of pods that a scheduler made leave for others.
PREEMPTED: Final = "PreemptionByScheduler"
#: How its message begins if it was ours, under whatever profile.
PREEMPTOR: Final = "alnair-scheduler:"
#: On a pod, by its node's agent: what its GPUs do.
UTILIZATION: Final = "ai.centaurus.io/utilization"

#: The kubelet writes this on the API's image of a static pod, which no scheduler placed.
MIRROR: Final = "kubernetes.io/config.mirror"
#: Taints that tell a node's state of now: they say nothing about the moment of the binding.
LIFECYCLE_TAINTS: Final = "node.kubernetes.io/"

#: The least memory of a slice, and of the host beyond one, MiB.
LEAST_MEMORY: Final = 64
#: The most of the host.
MOST_MEMORY: Final = 4194304

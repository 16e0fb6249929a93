"""The cluster of the guide on what-if questions: six nodes of eight GPUs, half full."""

from pathlib import Path

from msgspec.structs import replace

from alnair.configuration.profile_assembly import Assembly
from alnair.configuration.scheduler_file import Configuration
from alnair.model.nodes import Node
from alnair.model.workload import Pod, PodSpec
from alnair.snapshots.snapshot import encode, take
from kit import make
from kit.world import World

NOW = 1_767_225_600.0  # 2026-01-01
HOUR = 3600
GPUS = 8
#: A training job as its owner would write it.
TRAIN = """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train, namespace: team-a}
spec: {minMember: 2}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team-a}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata:
      labels: {scheduling.x-k8s.io/pod-group: train}
    spec:
      schedulerName: alnair-scheduler
      restartPolicy: Never
      containers:
      - name: main
        image: train
        resources:
          requests: {cpu: 8}
          limits: {nvidia.com/gpu: 8}
"""


def running(name: str, node: str, first: int, asked: PodSpec, **fields: object) -> Pod:
    """A pod of a controller that holds a node's GPUs from `first` on."""
    demand = asked.gpu
    count = demand.whole if demand else 0
    shares = tuple(
        make.share(make.gpu(node, i, "H100", 81920)) for i in range(first, first + count)
    )
    if demand and demand.memory_mib:
        part = make.share(make.gpu(node, first, "H100", 81920), demand.memory_mib, demand.compute)
        shares = (*shares, part)
    pod = make.pod(name, asked, node=node, namespace="team-b", bound_at=NOW - HOUR, owned=True)
    return replace(pod, assignment=(("main", shares),), **fields)


def cluster() -> tuple[list[Node], list[Pod]]:
    """Its nodes and pods."""
    nodes = [
        make.node(f"gpu-{i}", gpus=GPUS, model="H100", gpu_memory=81920, cpu=96_000)
        for i in range(1, 7)
    ]
    whole = make.spec
    pods = [
        running("old-0", "gpu-1", 0, whole(whole=8), group="old", time_limit=3 * HOUR),
        running("old-1", "gpu-2", 0, whole(whole=8), group="old", time_limit=3 * HOUR),
        running("serve-x7k2p", "gpu-3", 0, whole(whole=4), labels=(("app", "serve"),)),
        running("serve-q9v4d", "gpu-4", 0, whole(whole=4), labels=(("app", "serve"),)),
        running("tune-4", "gpu-4", 4, whole(whole=2), time_limit=30 * HOUR),
        running("notebook-7c9f4", "gpu-5", 0, whole(slice_mib=20480, compute=25)),
        running("notebook-b2h8s", "gpu-5", 1, whole(slice_mib=20480, compute=25)),
        running("sweep-0", "gpu-6", 0, whole(whole=1), owned=False),
    ]
    return nodes, pods


def save(path: Path) -> None:
    """Save a snapshot of it."""
    nodes, pods = cluster()
    world = World(check=False)
    world.now = NOW
    for node in nodes:
        world.put(node)
    world.declare(replace(make.gang("old", 2), namespace="team-b"))
    budget = replace(make.budget("serve", allowed=1, app="serve"), namespace="team-b")
    world.budget(budget)
    world.create(*pods)
    world.settle(0.0)
    world.restart()
    path.write_bytes(encode(take(world.engine.view, Assembly(Configuration()).explicit(), 0, NOW)))

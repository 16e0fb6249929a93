"""Kinds of work of `scheduler_throughput.py`: nodes, what is there before, and what is timed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from alnair.kube.objects import simulated_nodes
from alnair.kube.resources import PODGROUPS
from alnair.local.nodelist import alike
from alnair.model import names

Manifest = dict[str, Any]

RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
RACKS: Final = 50
GANG: Final = 50
#: Priority class of the pods that evict others.
HIGH: Final = "bench-high"
#: Pods of this prefix are timed; others are there before.
TIMED: Final = "pod-"
_FULL: Final = 4
#: Pods on each node when a scheduler starts.
_RUNNING: Final = 10


@dataclass(frozen=True)
class Case:
    """One scheduler's turn."""

    nodes: int
    pods: int
    backlog: int
    namespace: str
    scheduler: str


def no_manifests(case: Case) -> list[Manifest]:
    """Nothing."""
    del case
    return []


def plain_nodes(count: int) -> list[Manifest]:
    """Nodes as scheduler_perf has them, with room for many pods, in racks and zones."""
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    nodes = []
    for index in range(count):
        name = f"node-{index:05d}"
        labels = {HOST: name, RACK: f"rack-{index % RACKS}", ZONE: f"zone-{index % 3}"}
        nodes.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "status": {
                    "capacity": amounts,
                    "allocatable": amounts,
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )
    return nodes


def gpu_nodes(count: int) -> list[Manifest]:
    """Nodes of eight GPUs."""
    return [simulated_nodes.manifest(n, "2026-01-01T00:00:00Z") for n in alike(count, 8, "V100M32")]


def pod(case: Case, name: str, cpu: str = "100m", memory: str = "500Mi", **spec: Any) -> Manifest:
    """A pod that ends as soon as it is deleted."""
    requests = {"cpu": cpu, "memory": memory}
    limits = spec.pop("limits", {})
    metadata = {"name": name, "namespace": case.namespace, "labels": spec.pop("labels", {})}
    container = {
        "name": "main",
        "image": "pause",
        "resources": {"requests": requests, "limits": limits},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | spec.pop("metadata", {}),
        "spec": {
            "schedulerName": case.scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def _timed(case: Case, each: Callable[[int], dict[str, Any]]) -> list[Manifest]:
    return [pod(case, f"{TIMED}{i:06d}", **each(i)) for i in range(case.pods)]


def identical(case: Case) -> list[Manifest]:
    """Pods of one class."""
    return _timed(case, lambda _: {})


def distinct(case: Case) -> list[Manifest]:
    """Pods no two of which ask for the same."""
    return _timed(
        case, lambda i: {"cpu": f"{100 + i % 400}m", "memory": str((500 << 20) + i * 4096)}
    )


def spread(case: Case) -> list[Manifest]:
    """Pods that must be spread evenly over three zones."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "bench"}},
    }
    return _timed(
        case, lambda _: {"labels": {"app": "bench"}, "topologySpreadConstraints": [constraint]}
    )


def interpod(case: Case) -> list[Manifest]:
    """Pods in turn that must be alone on a node, and that like to be in a rack with others."""

    def each(index: int) -> dict[str, Any]:
        if index % 2:
            term = {"labelSelector": {"matchLabels": {"app": "near"}}, "topologyKey": RACK}
            liked = [{"weight": 50, "podAffinityTerm": term}]
            affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": liked}}
            return {"labels": {"app": "near"}, "affinity": affinity}
        # As many as half of the nodes are in one set, so that each finds a node.
        own = f"alone-{index // case.nodes}"
        term = {"labelSelector": {"matchLabels": {"app": own}}, "topologyKey": HOST}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return {"labels": {"app": own}, "affinity": affinity}

    return _timed(case, each)


def parked(case: Case) -> list[Manifest]:
    """Pods that ask for more than any node has."""
    return [pod(case, f"parked-{i:06d}", cpu="1000") for i in range(case.backlog)]


def gangs(case: Case) -> list[Manifest]:
    """Gangs of 50, each in one rack."""
    return _timed(case, lambda i: {"labels": {names.POD_GROUP_LABEL: f"gang-{i // GANG}"}})


def small_groups(case: Case) -> list[Manifest]:
    """Their PodGroups; the last one may have fewer pods."""
    starts = range(0, case.pods, GANG)
    return [_group(f"gang-{s // GANG}", min(GANG, case.pods - s)) for s in starts]


def gang(case: Case) -> list[Manifest]:
    """One gang, in one rack."""
    return _timed(case, lambda _: {"labels": {names.POD_GROUP_LABEL: "gang"}})


def one_group(case: Case) -> list[Manifest]:
    """Its PodGroup."""
    return [_group("gang", case.pods)]


def _group(name: str, count: int) -> Manifest:
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "annotations": {names.TOPOLOGY_REQUIRED: RACK}},
        "spec": {"minMember": count},
    }


def low(case: Case) -> list[Manifest]:
    """Pods without priority that fill the nodes; they are there without having been scheduled."""
    return [
        pod(case, f"low-{n:05d}-{i}", cpu="8", nodeName=f"node-{n:05d}")
        for n in range(case.nodes)
        for i in range(_FULL)
    ]


def running(case: Case) -> list[Manifest]:
    """Pods that are bound already, ten on each node."""
    return [
        pod(case, f"running-{n:05d}-{i}", nodeName=f"node-{n:05d}")
        for n in range(case.nodes)
        for i in range(_RUNNING)
    ]


def high(case: Case) -> list[Manifest]:
    """Pods of high priority that each need the room of one of those."""
    return _timed(case, lambda _: {"cpu": "8", "priorityClassName": HIGH})


def fractions(case: Case) -> list[Manifest]:
    """Slices of GPUs of ten sizes."""
    return _timed(
        case,
        lambda i: {
            "limits": {
                names.VGPU_MEMORY: str(3000 + 500 * (i % 10)),
                names.VGPU_COMPUTE: str(10 + 5 * (i % 10)),
            }
        },
    )


@dataclass(frozen=True)
class Kind:
    """What is created, and how it is timed."""

    #: The pods that are timed.
    pods: Callable[[Case], list[Manifest]]
    nodes: Callable[[int], list[Manifest]] = plain_nodes
    #: PodGroups, and pods that are there before and not timed.
    groups: Callable[[Case], list[Manifest]] = no_manifests
    before: Callable[[Case], list[Manifest]] = no_manifests
    #: The scheduler runs already when the pods are created, and time runs from the first of them.
    burst: bool = False
    #: Why the real kube-scheduler does not take part; empty if it does.
    alone: str = ""
    default_nodes: int = 1000
    default_pods: int = 3000
    #: At most so many pods for each node.
    most_per_node: float = 60.0


_NO_GANGS: Final = "kube-scheduler has no gangs unless its alpha features are switched on"

KINDS: Final = {
    "identical": Kind(identical),
    "distinct": Kind(distinct),
    "gangs": Kind(gangs, groups=small_groups, alone=_NO_GANGS, default_pods=1000),
    # A fiftieth of the nodes must hold it.
    "gang1000": Kind(
        gang, groups=one_group, alone=_NO_GANGS, default_pods=1000, most_per_node=60.0 / RACKS
    ),
    "spread": Kind(spread, default_pods=1000),
    "interpod": Kind(interpod, default_pods=1000),
    "backlog": Kind(identical, before=parked, burst=True, default_pods=1000),
    "start": Kind(identical, before=running, default_nodes=5000, default_pods=100),
    "preemption": Kind(high, before=low, default_pods=200, most_per_node=2.0),
    "fractions": Kind(
        fractions,
        nodes=gpu_nodes,
        burst=True,
        alone="kube-scheduler knows no fractions of GPUs",
        default_nodes=100,
        default_pods=40,
        most_per_node=16.0,
    ),
}

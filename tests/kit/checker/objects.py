"""Objects for the checker's tests, as the API server would return them."""

import json
from typing import Any

from alnair.checker.cluster import Finding, check
from alnair.checker.objects.state import cluster_of

Manifest = dict[str, Any]
CPU = "cpu"
WHOLE, MEMORY, COMPUTE = "nvidia.com/gpu", "alnair/vgpu-memory", "alnair/vgpu-compute"
#: A device of somebody else's plugin.
NIC = "example.com/nic"
TIME = "2026-01-01T00:00:00Z"


def node(name: str = "n", gpus: int = 0, **changes: Any) -> Manifest:
    """A node with 4 cores, 8 GiB and T4s of 16000 MiB named n-0, n-1 and so on.

    Those whose index is in `unhealthy` take nothing new, and are not in what it offers.
    """
    allocatable = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi", "pods": "5"}
    annotations = {}
    labels = {"zone": "a", "size": "10", **changes.get("labels", {})}
    if gpus:
        factor = changes.get("factor", 1)
        unhealthy = changes.get("unhealthy", ())
        healthy = gpus - len(unhealthy)
        allocatable |= {
            WHOLE: str(healthy),
            MEMORY: str(16000 * healthy),
            COMPUTE: str(100 * healthy * factor),
            "alnair/vgpu": str(100 * healthy),
        }
        entries = [
            {"uuid": f"{name}-{i}", "index": i, "model": "T4", "memory_mib": 16000}
            | ({"problem": "it does not answer"} if i in unhealthy else {})
            for i in range(gpus)
        ]
        annotations["ai.centaurus.io/gpu-static"] = json.dumps({"v": 1, "t": TIME, "gpus": entries})
    if "static" in changes:
        annotations["ai.centaurus.io/gpu-static"] = changes["static"]
    return {
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"taints": changes.get("taints", [])},
        "status": {
            "allocatable": allocatable | changes.get("allocatable", {}),
            "capacity": changes.get("capacity", {}),
        },
    }


def container(
    name: str = "main",
    *,
    always: bool = False,
    more: Manifest | None = None,
    **amounts: object,
) -> Manifest:
    """A container; keyword names are cpu, memory, whole, mib, percent; `more` has others."""
    resources = {
        {"whole": WHOLE, "mib": MEMORY, "percent": COMPUTE}.get(key, key): str(value)
        for key, value in amounts.items()
    } | (more or {})
    made: Manifest = {"name": name, "resources": {"requests": resources}}
    return made | ({"restartPolicy": "Always"} if always else {})


def part(uuid: str, mib: int = 16000, percent: int = 100, *, whole: bool = False) -> Manifest:
    """A part of a GPU; its index is the end of the UUID."""
    index = int(uuid.rsplit("-", 1)[1])
    return {
        "uuid": uuid,
        "index": index,
        "memory_mib": mib,
        "compute": percent,
        "whole": whole,
    }


def whole(uuid: str) -> Manifest:
    """A whole T4."""
    return part(uuid, whole=True)


def assignment(**containers: list[Manifest]) -> str:
    """The annotation's text."""
    return json.dumps({"v": 1, "t": TIME, "containers": containers})


def pod(name: str = "p", *containers: Manifest, on: str = "n", **changes: Any) -> Manifest:
    """A pod of ours that is bound to node n."""
    annotations = dict(changes.get("annotations", {}))
    if "assigned" in changes:
        annotations["ai.centaurus.io/gpu-assignment"] = changes["assigned"]
    metadata = {
        "name": name,
        "namespace": changes.get("namespace", "d"),
        "uid": changes.get("uid", f"uid-{name}"),
        "labels": changes.get("labels", {}),
        "annotations": annotations,
    }
    if changes.get("deleting"):
        metadata["deletionTimestamp"] = TIME
    spec = {
        "schedulerName": changes.get("scheduler", "alnair-scheduler"),
        "nodeName": on,
        "containers": list(containers) or [container()],
    }
    spec |= changes.get("spec", {})
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": changes.get("phase", "Running")},
    }


def group(
    least: int, name: str = "g", api: str = "scheduling.x-k8s.io/v1alpha1", topology: str = ""
) -> Manifest:
    """A PodGroup, with a required topology or none."""
    annotations = {"ai.centaurus.io/topology-required": topology} if topology else {}
    return {
        "apiVersion": api,
        "metadata": {"name": name, "namespace": "d", "annotations": annotations},
        "spec": {"minMember": least},
    }


def claim(name: str, volume: str = "", *modes: str) -> Manifest:
    """A claim, bound if it names its volume."""
    return {
        "metadata": {"name": name, "namespace": "d"},
        "spec": {"accessModes": list(modes or ["ReadWriteOnce"]), "volumeName": volume},
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, **labels: str) -> Manifest:
    """A persistent volume that only nodes with these labels reach; all of them without any."""
    expressions = [{"key": k, "operator": "In", "values": [v]} for k, v in labels.items()]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {
        "metadata": {"name": name},
        "spec": {"nodeAffinity": {"required": required}} if labels else {},
    }


def found(
    pods: list[Manifest],
    nodes: list[Manifest] | None = None,
    groups: list[Manifest] | None = None,
    **options: Any,
) -> Finding:
    """Check these objects."""
    return check(cluster_of(nodes or [node(gpus=2)], pods, groups or []), **options)


def rules(*args: Any, **options: Any) -> set[str]:
    """Which rules these objects break."""
    return {violation.rule for violation in found(*args, **options).violations}

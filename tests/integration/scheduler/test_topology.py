"""A node with links and a report of its zones, both as API objects: pods get the right GPUs."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import NODE_RESOURCE_TOPOLOGIES, NODES, PODS
from alnair.model import names
from kit.live.scheduler_process import StartScheduler, bound, eventually, pod

NODE = "wired"
#: GPUs 0 and 2, and 1 and 3, have NVLinks; 0 and 1 are on NUMA node 0.
PARTNER = {0: 2, 1: 3, 2: 0, 3: 1}


def gpu_static() -> str:
    gpus = [
        {
            "uuid": f"GPU-{NODE}-{index}",
            "index": index,
            "model": "A100",
            "memory_mib": 40960,
            "numa": index // 2,
            "links": {
                str(other): "NV12" if other == PARTNER[index] else "SYS"
                for other in PARTNER
                if other != index
            },
        }
        for index in PARTNER
    ]
    return json.dumps({"v": 1, "t": "2026-11-21T12:00:00Z", "gpus": gpus})


@pytest.fixture
async def wired(admin: Client) -> AsyncIterator[str]:
    """A node that only pods of these tests name."""
    amounts = {
        "cpu": "40",
        "memory": "64Gi",
        "pods": "110",
        names.GPU: "4",
        names.VGPU: "400",
        names.VGPU_MEMORY: str(4 * 40960),
        names.VGPU_COMPUTE: "400",
    }
    await admin.create(
        NODES,
        {
            "metadata": {
                "name": NODE,
                "labels": {"kubernetes.io/hostname": NODE},
                "annotations": {names.GPU_STATIC: gpu_static()},
            },
            # Others keep off it, and nobody evicts from it though no kubelet reports.
            "spec": {"taints": [{"key": NODE, "effect": "NoSchedule"}]},
            "status": {"capacity": amounts, "allocatable": amounts},
        },
    )
    yield NODE
    await admin.delete(NODES, NODE)
    if (await admin.list(NODE_RESOURCE_TOPOLOGIES)).items:
        await admin.delete(NODE_RESOURCE_TOPOLOGIES, NODE)


async def report(admin: Client, *cpus: str) -> None:
    """Report zones with so many cores."""
    await admin.create(
        NODE_RESOURCE_TOPOLOGIES,
        {
            "apiVersion": NODE_RESOURCE_TOPOLOGIES.api_version,
            "kind": NODE_RESOURCE_TOPOLOGIES.kind,
            "metadata": {"name": NODE},
            "attributes": [
                {"name": "topologyManagerPolicy", "value": "single-numa-node"},
                {"name": "topologyManagerScope", "value": "pod"},
            ],
            "zones": [
                {
                    "name": f"node-{number}",
                    "type": "Node",
                    "resources": [
                        {"name": name, "capacity": a, "allocatable": a, "available": a}
                        for name, a in (("cpu", cpu), ("memory", "32Gi"))
                    ],
                }
                for number, cpu in enumerate(cpus)
            ],
        },
    )


def asking(namespace: str, name: str, cpu: str, gpus: int) -> dict[str, Any]:
    limits = {"cpu": cpu, "memory": "1Gi", names.GPU: str(gpus)}
    container = {"name": "main", "image": "pause", "resources": {"limits": limits}}
    manifest = pod(namespace, name, containers=[container])
    manifest["spec"]["tolerations"] = [{"operator": "Exists"}]
    manifest["spec"]["nodeSelector"] = {"kubernetes.io/hostname": NODE}
    return manifest


async def placed(admin: Client, namespace: str, name: str) -> list[int]:
    """Indices of the GPUs that the pod was given, once it is bound."""

    async def is_bound() -> bool:
        return (await bound(admin, namespace)).get(name) == NODE

    await eventually(is_bound)
    annotations = (await admin.get(PODS, name, namespace))["metadata"]["annotations"]
    (parts,) = json.loads(annotations[names.GPU_ASSIGNMENT])["containers"].values()
    return [part["index"] for part in parts]


async def test_the_assignment_shows_the_clique(
    admin: Client, namespace: str, start_scheduler: StartScheduler, wired: str
) -> None:
    start_scheduler()
    await admin.create(PODS, asking(namespace, "pair", "4", 2))
    assert await placed(admin, namespace, "pair") == [0, 2]
    await admin.create(PODS, asking(namespace, "single", "4", 1))
    assert await placed(admin, namespace, "single") == [1]


async def test_gpus_are_in_the_zone_that_has_the_cores(
    admin: Client, namespace: str, start_scheduler: StartScheduler, wired: str
) -> None:
    await report(admin, "2", "10")
    start_scheduler()  # and so it knows the report before the pods
    await admin.create(PODS, asking(namespace, "near", "6", 2))
    assert await placed(admin, namespace, "near") == [2, 3], "not the linked ones: zone 0 is full"
    await admin.create(PODS, asking(namespace, "waits", "6", 1))

    async def refused() -> bool:
        conditions = (await admin.get(PODS, "waits", namespace))["status"].get("conditions", ())
        return any("cannot align pod" in c.get("message", "") for c in conditions)

    await eventually(refused)
    await admin.delete(NODE_RESOURCE_TOPOLOGIES, NODE)
    assert await placed(admin, namespace, "waits") in ([0], [1]), "nobody says it has zones"

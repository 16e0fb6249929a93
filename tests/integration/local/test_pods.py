"""Pods on simulated nodes: admission, scheduling by the real kube-scheduler, and their life."""

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest

from alnair.kube.client import Client
from alnair.kube.resources import LEASES, NODES, PODS, Manifest, grouped
from alnair.local import nodelist, simnodes
from alnair.local.controlplane import LocalCluster
from alnair.local.errors import LocalClusterError
from alnair.local.report import NO_REPORT
from alnair.model.api_types import GpuStatic
from alnair.traces.openb import TraceNode

MakeNamespace = Callable[..., Awaitable[str]]
JOBS = grouped("batch", "v1", "jobs", "Job")


def pod(
    name: str, namespace: str, *limits: dict[str, str], init: Sequence[dict[str, str]] = ()
) -> Manifest:
    """A pod with a container per entry."""
    containers = [
        {"name": f"c{i}", "image": "none", "resources": {"limits": limit}}
        for i, limit in enumerate(limits)
    ]
    first = [
        {"name": f"i{i}", "image": "none", "resources": {"limits": limit}}
        for i, limit in enumerate(init)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": containers, "initContainers": first},
    }


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    """Waits for something that the cluster does in its own time."""
    async with asyncio.timeout(seconds):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.1)


def limits(found: Manifest, kind: str = "containers") -> list[dict[str, str]]:
    return [one["resources"].get("limits", {}) for one in found["spec"][kind]]


def requests(found: Manifest, kind: str = "containers") -> list[dict[str, str]]:
    return [one["resources"].get("requests", {}) for one in found["spec"][kind]]


async def test_a_container_with_a_part_of_a_gpu_gets_its_slot(
    client: Client, namespace: str
) -> None:
    memory, nothing = {"alnair/vgpu-memory": "2048"}, {"alnair/vgpu-memory": "0"}
    both = memory | {"alnair/vgpu-compute": "30"}
    made = await client.create(PODS, pod("p", namespace, memory, nothing, both, init=(both, {})))
    slot = {"alnair/vgpu": "1"}
    assert limits(made) == [memory | slot, nothing, both | slot]
    assert requests(made) == limits(made)
    assert limits(made, "initContainers") == [both | slot, {}]
    assert requests(made, "initContainers") == limits(made, "initContainers")


async def test_an_explicit_slot_stays_as_it_is(client: Client, namespace: str) -> None:
    given = {"alnair/vgpu-memory": "64", "alnair/vgpu": "3"}
    made = await client.create(PODS, pod("p", namespace, given, {"alnair/vgpu-memory": "65"}))
    assert [one["alnair/vgpu"] for one in limits(made)] == ["3", "1"]
    assert [one["alnair/vgpu"] for one in requests(made)] == ["3", "1"]


async def test_pods_without_parts_of_gpus_are_untouched(client: Client, namespace: str) -> None:
    whole = {"nvidia.com/gpu": "1", "cpu": "1"}
    made = await client.create(PODS, pod("p", namespace, whole, {}))
    assert limits(made) == [whole, {}]
    assert "initContainers" not in made["spec"] or made["spec"]["initContainers"] == []


async def test_nodes_are_as_our_agent_would_publish_them(
    client: Client, cluster: LocalCluster
) -> None:
    nodes = nodelist.alike(2, 4, "T4") + nodelist.alike(1, 0, "")
    assert await cluster.add_nodes(nodes) == 3
    assert await cluster.add_nodes(nodes) == 0
    assert await cluster.add_nodes(nodelist.alike(3, 4, "t4")) == 1
    found = await client.get(NODES, "t4x4-0001")
    assert found["status"]["capacity"] == found["status"]["allocatable"]
    capacity = found["status"]["capacity"]
    assert capacity["cpu"] == "48"
    assert capacity["memory"] == str(4 * 49152 * 2**20)
    assert capacity["pods"] == "110"
    assert capacity["nvidia.com/gpu"] == "4"
    assert capacity["alnair/vgpu"] == "400"
    assert capacity["alnair/vgpu-memory"] == str(4 * 15360)
    assert capacity["alnair/vgpu-compute"] == "400"
    labels = found["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "T4"
    assert labels["kubernetes.io/hostname"] == "t4x4-0001"
    text = found["metadata"]["annotations"]["ai.centaurus.io/gpu-static"]
    static = msgspec.json.decode(text, type=GpuStatic)
    assert [gpu.index for gpu in static.gpus] == [0, 1, 2, 3]
    assert [gpu.numa for gpu in static.gpus] == [0, 0, 1, 1]
    assert {gpu.memory_mib for gpu in static.gpus} == {15360}
    assert len({gpu.uuid for gpu in static.gpus}) == 4
    assert ": " not in text
    bare = await client.get(NODES, "cpu-0000")
    assert "nvidia.com/gpu" not in bare["status"]["capacity"]
    lease = await client.get(LEASES, "alnair-agent-simulated", "alnair-system")
    assert lease["spec"]["renewTime"]


async def test_a_node_is_known_again_although_the_server_writes_its_memory_otherwise(
    client: Client, cluster: LocalCluster
) -> None:
    node = TraceNode("thousand", cpu_milli=1500, memory_mib=1000, gpus=1, model="T4")
    assert await cluster.add_nodes([node]) == 1
    found = await client.get(NODES, "thousand")
    assert await cluster.add_nodes([node]) == 0
    assert found["status"]["capacity"]["memory"] != str(1000 * 2**20)


async def test_a_node_of_the_same_name_and_another_kind_is_told(
    client: Client, cluster: LocalCluster
) -> None:
    one = nodelist.alike(1, 1, "A10")[0]
    await cluster.add_nodes([one])
    other = msgspec.structs.replace(one, gpus=2)
    with pytest.raises(LocalClusterError, match=r"node a10x1-0000 .*kubectl delete node"):
        await simnodes.ensure(client, [other], dt.datetime.now(dt.UTC), NO_REPORT)


async def test_simulated_nodes_are_schedulable_and_stay_ready(
    client: Client, cluster: LocalCluster
) -> None:
    await cluster.add_nodes(nodelist.alike(1, 8, "A100"))
    await cluster.restart("kube-controller-manager")
    found = await client.get(NODES, "a100x8-0000")
    assert not found["spec"].get("taints")
    ready = [one for one in found["status"]["conditions"] if one["type"] == "Ready"]
    assert [one["status"] for one in ready] == ["True"]


async def test_pods_run_jobs_end_and_deleted_pods_go(
    client: Client, cluster: LocalCluster, namespace: str
) -> None:
    await cluster.add_nodes(nodelist.alike(2, 8, "A100"))
    await client.create(PODS, pod("served", namespace, {"nvidia.com/gpu": "2"}))
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": namespace},
        "spec": {
            "template": {
                "metadata": {"annotations": {"ai.centaurus.io/simulated-duration": "1s"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "image": "none"}],
                },
            }
        },
    }
    await client.create(JOBS, job)

    async def is_running() -> bool:
        found = await client.get(PODS, "served", namespace)
        return found["status"]["phase"] == "Running" and found["spec"].get("nodeName")

    async def is_complete() -> bool:
        return (await client.get(JOBS, "job", namespace))["status"].get("succeeded") == 1

    async def is_gone() -> bool:
        listed = await client.list(PODS, namespace)
        return all(one["metadata"]["name"] != "served" for one in listed.items)

    await until(is_running)
    await until(is_complete)
    await client.delete(PODS, "served", namespace)
    await until(is_gone)


async def test_custom_resources_are_served(client: Client, namespace: str) -> None:
    resource = grouped("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
    document = {
        "apiVersion": resource.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": namespace},
        "spec": {"minMember": 2},
    }
    await client.create(resource, document)

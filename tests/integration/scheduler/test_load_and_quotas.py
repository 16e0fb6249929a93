"""What agents measure and what quotas allow, through a real API server."""

import asyncio
import time

import msgspec

from alnair.kube.client import Client
from alnair.kube.objects.annotations import rfc3339
from alnair.kube.resources import ELASTIC_QUOTAS, LEASES, NODES, PODS, Manifest
from alnair.local.controlplane import LocalCluster
from alnair.model import api_types, names
from kit.live.scheduler_process import StartController, StartScheduler, bound, eventually, pod

LIMITS = {names.VGPU_MEMORY: 2048}


async def message(client: Client, namespace: str, name: str) -> str:
    """What the pod's owner is told of why it waits."""
    found = await client.get(PODS, name, namespace)
    conditions = found.get("status", {}).get("conditions") or ()
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")


async def report(client: Client, node: Manifest, util: float) -> None:
    """Write the loads of all GPUs of a node as its agent would."""
    static = msgspec.json.decode(node["metadata"]["annotations"][names.GPU_STATIC])
    written = {
        f"{names.GPU_LOAD}{gpu['index']}": msgspec.json.encode(
            api_types.GpuLoadAnnotation(1, rfc3339(time.time()), gpu["uuid"], util, 4096)
        ).decode()
        for gpu in static["gpus"]
    }
    patch = {"metadata": {"annotations": {**written, names.AGENT_LEASE: "alnair-agent-test"}}}
    await client.merge_patch(NODES, node["metadata"]["name"], patch)


async def test_slices_keep_off_gpus_that_are_measured_busy(
    gpu_cluster: LocalCluster, admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    lease = {
        "metadata": {"name": "alnair-agent-test", "namespace": names.NAMESPACE},
        # It is renewed no more, and is not to be over before the test.
        "spec": {"renewTime": rfc3339(time.time() + 600).replace("Z", ".000000Z")},
    }
    await admin.create(LEASES, lease)
    nodes = (await admin.list(NODES)).items
    try:
        calm = nodes[3]["metadata"]["name"]
        for node in nodes:
            await report(admin, node, 5.0 if node["metadata"]["name"] == calm else 60.0)
        start_scheduler()  # and so it knows the reports before the pods
        for number in range(4):
            await admin.create(
                PODS,
                pod(namespace, f"p-{number}", limits=LIMITS, scheduler=names.UTILSCHED),
            )

        async def all_bound() -> bool:
            return len(await bound(admin, namespace)) == 4

        await eventually(all_bound)
        assert set((await bound(admin, namespace)).values()) == {calm}
    finally:
        gone = {f"{names.GPU_LOAD}{i}": None for i in range(16)}
        for node in nodes:
            patch = {"metadata": {"annotations": {**gone, names.AGENT_LEASE: None}}}
            await admin.merge_patch(NODES, node["metadata"]["name"], patch)
        await admin.delete(LEASES, "alnair-agent-test", names.NAMESPACE)


async def test_a_quota_holds_pods_back_and_says_so_until_it_is_raised(
    gpu_cluster: LocalCluster, admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    quota = {
        "apiVersion": ELASTIC_QUOTAS.api_version,
        "kind": ELASTIC_QUOTAS.kind,
        "metadata": {"name": "team", "namespace": namespace},
        "spec": {"min": {"nvidia.com/gpu": 2}, "max": {"nvidia.com/gpu": 2}},
    }
    await admin.create(ELASTIC_QUOTAS, quota)
    start_scheduler()  # and so it knows the quota before the pods
    for number in range(3):
        await admin.create(PODS, pod(namespace, f"p-{number}", limits={names.GPU: 1}))

    async def one_waits() -> bool:
        waiting = {f"p-{n}" for n in range(3)} - set(await bound(admin, namespace))
        return len(waiting) == 1 and "is more than max 2" in await message(
            admin, namespace, waiting.pop()
        )

    await eventually(one_waits, what="the third pod waits for its quota")
    more = {"spec": {"min": {"nvidia.com/gpu": 3}, "max": {"nvidia.com/gpu": 3}}}
    await admin.merge_patch(ELASTIC_QUOTAS, "team", more, namespace)

    async def all_bound() -> bool:
        return len(await bound(admin, namespace)) == 3

    await eventually(all_bound, what="the raised quota lets it go")


async def test_the_status_of_a_quota_says_what_its_namespace_holds(
    gpu_cluster: LocalCluster,
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    start_controller: StartController,
) -> None:
    start_scheduler()
    start_controller()
    quota = {
        "apiVersion": ELASTIC_QUOTAS.api_version,
        "kind": ELASTIC_QUOTAS.kind,
        "metadata": {"name": "team", "namespace": namespace},
        "spec": {"min": {"nvidia.com/gpu": 2, "cpu": "4"}, "max": {"nvidia.com/gpu": 2}},
    }
    await admin.create(ELASTIC_QUOTAS, quota)

    async def seen() -> Manifest:
        return await admin.get(ELASTIC_QUOTAS, "team", namespace)

    async def says(gpus: int) -> bool:
        used = (await seen()).get("status", {}).get("used") or {}
        return str(used.get(names.GPU)) == str(gpus) and "cpu" in used

    await eventually(lambda: says(0), what="a status though nothing is held")
    for number in range(2):
        await admin.create(PODS, pod(namespace, f"p-{number}", limits={names.GPU: 1}))

    async def both_bound() -> bool:
        return len(await bound(admin, namespace)) == 2

    await eventually(both_bound)
    await admin.create(PODS, pod(namespace, "p-2", limits={names.GPU: 1}, cpu="3"))
    await eventually(lambda: says(2), what="two that hold GPUs, and not the one that waits")
    await admin.delete(PODS, "p-0", namespace, grace_seconds=0)
    await admin.delete(PODS, "p-1", namespace, grace_seconds=0)

    async def the_third_alone() -> bool:  # and not one of the first two, while the other leaves
        used = (await seen())["status"]["used"]
        return (str(used[names.GPU]), str(used["cpu"])) == ("1", "3")

    await eventually(the_third_alone)
    version = (await seen())["metadata"]["resourceVersion"]
    await asyncio.sleep(2.5)
    assert (await seen())["metadata"]["resourceVersion"] == version, "only changes are written"

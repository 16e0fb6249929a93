"""Pods on a real API server: placed with their GPUs in one write, or told why not."""

import json

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import EVENTS, NODES, PODGROUPS, PODS
from alnair.model import names
from kit.live.scheduler_process import StartScheduler, bound, eventually, pod


async def condition(client: Client, namespace: str, name: str) -> str:
    """The message of the pod's PodScheduled condition, empty if it is not refused."""
    status = (await client.get(PODS, name, namespace))["status"]
    for one in status.get("conditions", ()):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            assert one["reason"] == "Unschedulable"
            return str(one["message"])
    return ""


async def test_whole_and_shared_gpus_are_assigned_with_the_bind(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    await admin.create(PODS, pod(namespace, "whole", limits={names.GPU: "2"}))
    slice_ = {names.VGPU_MEMORY: "4096", names.VGPU_COMPUTE: "30"}
    for i in range(3):
        await admin.create(PODS, pod(namespace, f"slice-{i}", limits=slice_))
    await admin.create(PODS, pod(namespace, "plain"))

    async def all_bound() -> bool:
        return len(await bound(admin, namespace)) == 5

    await eventually(all_bound)
    whole = json.loads(
        (await admin.get(PODS, "whole", namespace))["metadata"]["annotations"][names.GPU_ASSIGNMENT]
    )
    assert whole["v"] == 1
    (parts,) = whole["containers"].values()
    assert [p["whole"] for p in parts] == [True, True]
    assert len({p["uuid"] for p in parts}) == 2
    slices = [
        (p["spec"]["nodeName"], json.loads(p["metadata"]["annotations"][names.GPU_ASSIGNMENT]))
        for p in (await admin.list(PODS, namespace)).items
        if p["metadata"]["name"].startswith("slice")
    ]
    for _, document in slices:
        (part,) = document["containers"]["main"]
        assert (part["memory_mib"], part["compute"], part["whole"]) == (4096, 30, False)
    plain = await admin.get(PODS, "plain", namespace)
    assert names.GPU_ASSIGNMENT not in plain["metadata"].get("annotations", {})

    async def told() -> bool:
        events = (await admin.list(EVENTS, namespace)).items
        return sum(e["reason"] == "Scheduled" for e in events) == 5

    await eventually(told)


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({names.GPU: "5"}, "Insufficient nvidia.com/gpu"),
        ({names.VGPU_MEMORY: "16000"}, "no single GPU with enough free memory"),
    ],
)
async def test_what_no_gpu_can_give_is_refused_with_a_reason(
    admin: Client,
    namespace: str,
    start_scheduler: StartScheduler,
    limits: dict[str, str],
    says: str,
) -> None:
    start_scheduler()
    await admin.create(PODS, pod(namespace, "asks-too-much", limits=limits))

    async def refused() -> bool:
        return says in await condition(admin, namespace, "asks-too-much")

    await eventually(refused, what=f"condition with {says!r}")
    assert await bound(admin, namespace) == {}


async def test_what_only_the_scheduler_finds_wrong_with_a_request_is_told_on_the_pod(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    """What the admission policies can find, they refuse: see test_admission_of_requests.py."""
    start_scheduler()
    both = {names.GPU_MODELS: "T4", names.GPU_MODELS_NOT: "T4"}
    manifest = pod(namespace, "models", limits={names.GPU: "1"}, annotations=both)
    await admin.create(PODS, manifest)

    async def refused() -> bool:
        return "both name T4: keep it in one" in await condition(admin, namespace, "models")

    await eventually(refused)


async def test_a_port_of_the_host_is_had_once_per_node(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    """One more pod on the hosts' network than there are nodes, all with the same port."""
    start_scheduler()
    nodes = {n["metadata"]["name"] for n in (await admin.list(NODES)).items}
    ports = [{"containerPort": 8080}]  # the API server makes it a port of the host
    for i in range(len(nodes) + 1):
        containers = [{"name": "main", "image": "pause", "ports": ports}]
        manifest = pod(namespace, f"server-{i}", containers=containers)
        manifest["spec"]["hostNetwork"] = True
        await admin.create(PODS, manifest)

    async def settled() -> bool:
        """The refusal may be written before the last of the others is bound."""
        if len(await bound(admin, namespace)) < len(nodes):
            return False
        refused = [await condition(admin, namespace, f"server-{i}") for i in range(len(nodes) + 1)]
        wanted = f"{len(nodes)} node(s) didn't have free ports for the requested pod ports."
        return sum(wanted in text for text in refused) == 1

    await eventually(settled)
    placed = await bound(admin, namespace)
    assert sorted(placed.values()) == sorted(nodes)


async def test_a_gang_is_placed_whole_and_only_when_whole(
    admin: Client, namespace: str, start_scheduler: StartScheduler
) -> None:
    start_scheduler()
    group = {
        "apiVersion": PODGROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "trio", "namespace": namespace},
        "spec": {"minMember": 3},
    }
    await admin.create(PODGROUPS, group)
    labels = {names.POD_GROUP_LABEL: "trio"}
    for i in range(2):
        await admin.create(
            PODS, pod(namespace, f"member-{i}", limits={names.GPU: "4"}, labels=labels)
        )

    async def waits() -> bool:
        return "waiting for 1 more" in await condition(admin, namespace, "member-0")

    await eventually(waits)
    assert await bound(admin, namespace) == {}
    await admin.create(PODS, pod(namespace, "member-2", limits={names.GPU: "4"}, labels=labels))

    async def whole() -> bool:
        return len(set((await bound(admin, namespace)).values())) == 3

    await eventually(whole)

    async def plan_is_cleared() -> bool:
        annotations = (await admin.get(PODGROUPS, "trio", namespace))["metadata"].get(
            "annotations", {}
        )
        return names.GANG_PLAN not in annotations

    await eventually(plan_is_cleared)

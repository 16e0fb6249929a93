"""Preemption on a real API server: the fewest victims, budgets, a scheduler that dies over it."""

import signal
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import DISRUPTION_BUDGETS, EVENTS, PODS, PRIORITY_CLASSES, Manifest
from alnair.model import names
from kit.live.scheduler_process import SHORT_LEASE, StartScheduler, bound, eventually, pod

#: Nodes of the cluster, and GPUs of each (`conftest`).
NODE_COUNT, GPUS = 6, 4
FINALIZER = "alnair.test/hold"


@pytest.fixture
async def high(admin: Client) -> AsyncIterator[str]:
    """A priority class above the default."""
    name = f"high-{uuid.uuid4().hex[:8]}"
    await admin.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": 1000})
    yield name
    await admin.delete(PRIORITY_CLASSES, name)


def gpu_pod(
    namespace: str, name: str, gpus: int, *, priority_class: str = "", **metadata: Any
) -> Manifest:
    manifest = pod(namespace, name, limits={names.GPU: str(gpus)}, **metadata)
    if priority_class:
        manifest["spec"]["priorityClassName"] = priority_class
    return manifest


async def fill(admin: Client, namespace: str, **metadata: Any) -> None:
    """Fill all nodes: one with a single pod, `big`, the others with two each."""
    await admin.create(PODS, gpu_pod(namespace, "big", GPUS, **metadata))

    async def placed(count: int) -> bool:
        return len(await bound(admin, namespace)) == count

    await eventually(lambda: placed(1))
    count = 2 * (NODE_COUNT - 1)
    for i in range(count):
        await admin.create(PODS, gpu_pod(namespace, f"half-{i}", GPUS // 2))
    await eventually(lambda: placed(count + 1))


async def names_of(admin: Client, namespace: str) -> set[str]:
    return {p["metadata"]["name"] for p in (await admin.list(PODS, namespace)).items}


async def test_a_pod_of_higher_priority_evicts_the_fewest_and_lands_in_their_place(
    admin: Client, namespace: str, start_scheduler: StartScheduler, high: str
) -> None:
    start_scheduler()
    await fill(admin, namespace)
    before = await bound(admin, namespace)
    await admin.create(PODS, gpu_pod(namespace, "high", GPUS, priority_class=high))

    async def landed() -> bool:
        return "high" in await bound(admin, namespace)

    await eventually(landed)
    after = await bound(admin, namespace)
    assert set(before) - set(after) == {"big"}
    assert after["high"] == before["big"]

    async def told() -> bool:
        events = (await admin.list(EVENTS, namespace)).items
        uid = (await admin.get(PODS, "high", namespace))["metadata"]["uid"]
        text = f"Preempted by pod {uid} on node {before['big']}"
        return any(e["reason"] == "Preempted" and e["message"] == text for e in events)

    await eventually(told)


async def test_a_budget_turns_preemption_to_other_pods(
    admin: Client, namespace: str, start_scheduler: StartScheduler, high: str
) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard", "namespace": namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    await admin.create(DISRUPTION_BUDGETS, budget)
    start_scheduler()  # and so it knows the budget before who preempts
    await fill(admin, namespace, labels={"app": "guarded"})

    async def counted() -> bool:
        found = await admin.get(DISRUPTION_BUDGETS, "guard", namespace)
        return found.get("status", {}).get("currentHealthy") == 1

    await eventually(counted)
    await admin.create(PODS, gpu_pod(namespace, "high", GPUS, priority_class=high))

    async def landed() -> bool:
        return "high" in await bound(admin, namespace)

    await eventually(landed)
    left = await names_of(admin, namespace)
    assert "big" in left
    assert len(left) == 2 + 2 * (NODE_COUNT - 1) - 2


async def test_a_scheduler_that_dies_after_the_eviction_leaves_the_room_to_its_pod(
    admin: Client, namespace: str, start_scheduler: StartScheduler, high: str
) -> None:
    first = start_scheduler(*SHORT_LEASE)
    await fill(admin, namespace, finalizers=[FINALIZER])
    node = (await bound(admin, namespace))["big"]
    await admin.create(PODS, gpu_pod(namespace, "high", GPUS, priority_class=high))

    async def evicted_and_nominated() -> bool:
        victim = await admin.get(PODS, "big", namespace)
        conditions = {(c["type"], c.get("reason")) for c in victim["status"].get("conditions", ())}
        going = "deletionTimestamp" in victim["metadata"]
        waiting = await admin.get(PODS, "high", namespace)
        nominated = waiting["status"].get("nominatedNodeName")
        marked = ("DisruptionTarget", "PreemptionByScheduler") in conditions
        return going and marked and nominated == node

    await eventually(evicted_and_nominated)
    first.signal(signal.SIGKILL)
    await admin.create(PODS, gpu_pod(namespace, "thief", GPUS))
    start_scheduler(*SHORT_LEASE)

    async def thief_is_refused() -> bool:
        status = (await admin.get(PODS, "thief", namespace))["status"]
        return any(c["type"] == "PodScheduled" for c in status.get("conditions", ()))

    await eventually(thief_is_refused)
    await admin.merge_patch(PODS, "big", {"metadata": {"finalizers": None}}, namespace)

    async def landed() -> bool:
        return "high" in await bound(admin, namespace)

    await eventually(landed)
    assert (await bound(admin, namespace))["high"] == node
    expected = {"high", "thief", *(f"half-{i}" for i in range(2 * (NODE_COUNT - 1)))}
    assert await names_of(admin, namespace) == expected

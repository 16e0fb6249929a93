"""What follows from a violation, on a real API server: an event, a condition, an eviction."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import EVENTS, PODS
from alnair.model import names
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.processes.agent.enforcement import REASON, Enforcement
from alnair.sharing.violations import Cleared, EvictTenant, Kind, SliceViolation
from kit.live.scheduler_process import eventually

GPU = "GPU-00000000-0000-0000-0000-000000000001"


async def test_a_violation_is_told_cleared_and_its_pod_evicted(
    client: Client,
    make_namespace: Callable[[], Awaitable[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    namespace = await make_namespace()
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "greedy", "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "none"}], "schedulerName": "nobody"},
    }
    await client.create(PODS, manifest)
    path = PODS.item("greedy", namespace)

    async def read() -> dict[str, object]:
        import msgspec

        return msgspec.json.decode(await client.raw("GET", path), type=dict)

    uid = (await read())["metadata"]["uid"]
    pod = OwningPod(namespace, "greedy", uid, "main")
    container = SimpleNamespace(
        assignment=ContainerSlices("x", ContainerMatch(pod=uid), (Share(GPU),), pod)
    )
    enforcement = Enforcement(client, "node-1")
    running = asyncio.create_task(enforcement.run())

    async def condition(status: str) -> dict[str, str]:
        found: list[dict[str, str]] = []

        async def is_there() -> bool:
            conditions = (await read())["status"].get("conditions") or []
            found[:] = [
                one
                for one in conditions
                if (one["type"], one["status"]) == (names.VGPU_VIOLATION, status)
            ]
            return bool(found)

        await eventually(is_there, what=f"the condition is {status}")
        return found[0]

    enforcement.tell(container, GPU, SliceViolation(Kind.MEMORY, "it holds too much"))
    assert "it holds too much" in (await condition("True"))["message"]
    enforcement.tell(container, GPU, Cleared(Kind.MEMORY))
    assert (await condition("False"))["reason"] == "WithinSlice"

    asked: list[str] = []
    evict = client.evict

    async def note(namespace: str, name: str, uid: str) -> None:
        asked.append(name)
        await evict(namespace, name, uid)

    async def evicted() -> bool:
        return enforcement.evictions == 1

    async def told() -> bool:
        return bool(await events())

    async def events() -> list[dict[str, Any]]:
        selector = f"involvedObject.uid={uid}"
        return (await client.list(EVENTS, namespace, field_selector=selector)).items

    monkeypatch.setattr(client, "evict", note)
    enforcement.tell(container, GPU, EvictTenant("it holds too much"))
    for _ in range(10):
        await asyncio.sleep(0)  # a turn of the loop, in which nothing can be waited for
    assert asked == ["greedy"], "the eviction waits for something"
    await eventually(evicted)
    assert asked == ["greedy"]
    await eventually(told)
    found = await events()
    assert [event["reason"] for event in found] == [REASON]
    assert found[0]["source"] == {"component": names.AGENT, "host": "node-1"}
    running.cancel()
    await asyncio.wait([running])

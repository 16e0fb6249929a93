"""What follows from a violation, on a real API server: an event, a condition, an eviction."""

import asyncio
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
from alnair.processes.agent.enforcement import (
    REASON,
    RECLAIMED,
    STRAY,
    SUSPENSION,
    SUSPENSION_FAILED,
    Enforcement,
)
from alnair.sharing.strays import StrayFound, StrayGone
from alnair.sharing.violations import Cleared, EvictTenant, Kind, SliceViolation
from kit.live.scheduler_process import eventually

GPU = "GPU-00000000-0000-0000-0000-000000000001"


async def test_a_violation_is_told_cleared_and_its_pod_evicted(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    enforcement.reclaim(container, GPU, "its owner needs what it borrowed")

    async def both() -> bool:
        return len(await events()) == 2

    await eventually(both)
    assert {event["reason"] for event in await events()} == {REASON, RECLAIMED}

    enforcement.tell_suspension(container, suspended=True, problem="")
    enforcement.tell_suspension(container, suspended=False, problem="its memory is lent")

    async def all_four() -> bool:
        return len(await events()) == 4

    await eventually(all_four)
    said = {event["reason"]: event["message"] for event in await events()}
    assert said[SUSPENSION] == "container main is suspended"
    assert said[SUSPENSION_FAILED] == "container main cannot be resumed: its memory is lent"
    assert asked == ["greedy", "greedy"]
    running.cancel()
    await asyncio.wait([running])


async def test_a_stray_is_told_on_its_pod_and_on_the_node(client: Client, namespace: str) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "thief", "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "none"}], "schedulerName": "nobody"},
    }
    uid = (await client.create(PODS, manifest))["metadata"]["uid"]
    pod = OwningPod(namespace, "thief", uid)
    enforcement = Enforcement(client, f"node-of-{namespace}")
    running = asyncio.create_task(enforcement.run())
    enforcement.tell_stray(pod, GPU, StrayFound("it was given nothing"))

    async def events(selector: str) -> list[dict[str, Any]]:
        return (await client.list(EVENTS, field_selector=selector)).items

    async def is_told(selector: str) -> list[dict[str, Any]]:
        async def is_there() -> bool:
            return bool(await events(selector))

        await eventually(is_there, what=f"an event with {selector}")
        return await events(selector)

    (on_pod,) = await is_told(f"involvedObject.uid={uid}")
    node = f"involvedObject.kind=Node,involvedObject.name=node-of-{namespace}"
    (on_node,) = await is_told(node)
    assert (on_pod["reason"], on_pod["type"]) == (STRAY, "Warning")
    assert on_pod["message"] == f"on {GPU}: it was given nothing"
    assert on_node["reason"] == STRAY
    assert on_node["message"] == f"pod {namespace}/thief on {GPU}: it was given nothing"

    async def says(status: str) -> None:
        async def is_so() -> bool:
            conditions = (await client.get(PODS, "thief", namespace))["status"].get("conditions")
            return any(
                (one["type"], one["status"]) == (names.VGPU_VIOLATION, status)
                for one in conditions or []
            )

        await eventually(is_so, what=f"the condition is {status}")

    await says("True")
    enforcement.tell_stray(pod, GPU, StrayGone())
    await says("False")
    running.cancel()
    await asyncio.wait([running])

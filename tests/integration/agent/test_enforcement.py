"""What follows from a violation, on a real API server: an event, a condition, an eviction."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

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

GPU = "GPU-00000000-0000-0000-0000-000000000001"


async def test_a_violation_is_told_cleared_and_its_pod_evicted(
    client: Client, make_namespace: Callable[[], Awaitable[str]]
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
        for _ in range(100):
            found = (await read())["status"].get("conditions") or []
            for one in found:
                if one["type"] == names.VGPU_VIOLATION and one["status"] == status:
                    return one
            await asyncio.sleep(0.05)
        raise AssertionError(status)

    enforcement.tell(container, GPU, SliceViolation(Kind.MEMORY, "it holds too much"))
    assert "it holds too much" in (await condition("True"))["message"]
    enforcement.tell(container, GPU, Cleared(Kind.MEMORY))
    assert (await condition("False"))["reason"] == "WithinSlice"

    began = time.perf_counter()
    enforcement.tell(container, GPU, EvictTenant("it holds too much"))
    while enforcement.evictions == 0:
        assert time.perf_counter() - began < 5
        await asyncio.sleep(0.01)
    assert time.perf_counter() - began < 1
    selector = f"involvedObject.uid={uid}"
    while not (events := (await client.list(EVENTS, namespace, field_selector=selector)).items):
        assert time.perf_counter() - began < 5
        await asyncio.sleep(0.05)
    assert [event["reason"] for event in events] == [REASON]
    assert events[0]["source"] == {"component": names.AGENT, "host": "node-1"}
    running.cancel()
    await asyncio.wait([running])

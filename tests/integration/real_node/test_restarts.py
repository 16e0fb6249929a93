"""Containers go on limited while what serves them is killed, and new ones start afterwards."""

import asyncio
import signal
from collections.abc import Awaitable, Callable

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import PODS, grouped
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import images
from kit.live.agent_in_node import agent_status
from kit.live.gpu_view import VIEW, as_a_slice, seen
from kit.live.real_pods import (
    NAMESPACE,
    RealPods,
    busy,
    container,
    gpu,
    pod,
    python,
    reports,
    shares,
    sliced,
    until,
)

REPLICA_SETS = grouped("apps", "v1", "replicasets", "ReplicaSet")
#: Seconds over which a tenant's share is looked at.
SPAN = 5.0
#: It asks for 3 GiB again and again, and says each time what the driver answered.
ASK = """
import ctypes as c, time
cuda = c.CDLL("libcuda.so.1")
context, memory = c.c_void_p(), c.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
while True:
    print(cuda.cuMemAlloc_v2(c.byref(memory), 3 << 30), flush=True)
    time.sleep(0.2)
"""


async def repair(cluster: LocalCluster) -> None:
    """What a user does, or a supervisor on a machine that has one."""
    await LocalCluster(cluster.name, root=cluster.layout.root).up()


async def pods_of_agent(cluster: LocalCluster) -> set[str]:
    """The pods that have slices, as the agent knows them."""
    said = await asyncio.to_thread(agent_status, cluster)
    return {one["assignment"]["pod"]["name"] for one in said["containers"]}


async def grown(read: Callable[[], Awaitable[str]], lines: int, what: str) -> list[str]:
    """Wait until a log has so many lines more, and return those."""
    before = len((await read()).splitlines())
    found: list[str] = []

    async def has_grown() -> bool:
        found[:] = (await read()).splitlines()[before:]
        return len(found) >= lines

    await until(has_grown, what)
    return found


@pytest.mark.parametrize("killed", ["kubelet", "agent", "containerd"])
async def test_tenants_stay_limited_through_a_kill_and_others_start(
    cluster: LocalCluster, pods: RealPods, killed: str
) -> None:
    greedy, beside = f"greedy-{killed}", f"beside-{killed}"
    made = await pods.start(pod(greedy, python(ASK, limits=sliced(2048, 10))))
    await pods.start(pod(beside, busy(limits=sliced(1024, 30))))
    before = (await pods.get(beside))["status"]["containerStatuses"][0]["containerID"]
    # As long as both run, they are refused what is beyond their slices: also while nobody serves.
    await pods.says(greedy, "2\n")
    await cluster.stop(killed, signal.SIGKILL)
    if killed == "agent":  # the others are asked for the logs
        assert set(await grown(lambda: pods.log(greedy), 5, "it is refused")) == {"2"}
    await repair(cluster)
    await pods.says(greedy, "2\n")  # a kubelet that has just come knows no logs yet
    assert set(await grown(lambda: pods.log(greedy), 5, "it is refused")) == {"2"}
    then = reports(await pods.says(beside, "}"))[-1]["time"]  # nor the logs of each at once

    async def has_run() -> bool:
        """As much as it can: here the machine starts a node's programs meanwhile."""
        log = await pods.log(beside)
        last = reports(log)[-1]["time"]
        seconds, parts = shares([log], after=max(then, last - SPAN - 1))
        if seconds < SPAN:
            return False
        # Without its limit it would have nearly all. How exact shares are is tested elsewhere.
        assert parts[0] < 0.5
        return parts[0] > 0.1

    await until(has_run, "it runs on")
    status = (await pods.get(beside))["status"]["containerStatuses"][0]
    assert (status["containerID"], status["restartCount"]) == (before, 0)
    assert {greedy, beside} <= await pods_of_agent(cluster)
    fresh = f"fresh-{killed}"
    await pods.create(pod(fresh, python(VIEW, limits=sliced(1500, 20))))
    assert seen(await pods.ended(fresh)) == as_a_slice(1500, gpu(await pods.get(fresh)))
    assert gpu(made) == gpu(await pods.get(greedy))


async def test_pods_start_although_the_agent_is_killed_meanwhile(
    cluster: LocalCluster, client: Client, pods: RealPods
) -> None:
    """A pod that the kubelet asks for in this very moment it refuses for good, and is replaced."""
    count, labels = 3, {"app": "meanwhile"}
    view_and_hold = python(f"{VIEW}\nimport time; time.sleep(3600)", limits=sliced(1000, 10))
    template = pod("meanwhile", view_and_hold, restartPolicy="Always")
    template["metadata"]["labels"] = labels
    spec = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "meanwhile", "namespace": NAMESPACE}
    await client.create(REPLICA_SETS, {"metadata": metadata, "spec": spec})

    async def listed(*phases: str) -> list[str]:
        found = await client.list(PODS, NAMESPACE, label_selector="app=meanwhile")
        return [p["metadata"]["name"] for p in found.items if p["status"]["phase"] in phases]

    async def are_there() -> bool:
        return len(await listed("Pending", "Running")) == count

    async def all_run() -> bool:
        return len(await listed("Running")) == count

    async def none_is_left() -> bool:
        return not await listed("Pending", "Running", "Failed")

    try:
        await until(are_there, "the pods are made")
        await cluster.stop("agent", signal.SIGKILL)
        await repair(cluster)
        await until(all_run, f"{count} pods run", 120)
        for name in await listed("Running"):
            text = await pods.says(name, "}")
            assert seen(text) == as_a_slice(1000, gpu(await pods.get(name)))
        for name in await listed("Failed"):
            assert (await pods.get(name))["status"]["reason"] == "UnexpectedAdmissionError"
    finally:
        await client.delete(REPLICA_SETS, "meanwhile", NAMESPACE)
        await until(none_is_left, "the pods are gone")


async def test_what_ended_while_the_agent_was_away_is_taken_back(
    cluster: LocalCluster, pods: RealPods
) -> None:
    most = ("cuda_load", "--seconds", "3600")
    await pods.start(pod("all", container(images.CUDA, *most, limits=sliced(80_000, 100))))
    await cluster.stop("agent", signal.SIGKILL)
    await pods.delete("all")
    await repair(cluster)

    async def is_forgotten() -> bool:
        return "all" not in await pods_of_agent(cluster)

    await until(is_forgotten, "the agent has forgotten it")
    await pods.start(pod("next", container(images.CUDA, *most, limits=sliced(80_000, 100))))

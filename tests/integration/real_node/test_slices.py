"""Slices of real containers: each is held to what its pod asked for, on the GPU it was given."""

import asyncio
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, NotFound
from alnair.kube.resources import NODES
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import images
from alnair.local.real_node.settings import AGENT_PORT, NAME
from alnair.model import names
from alnair.processes.agent.enforcement import START_REFUSED
from kit.live.agent_in_node import agent_status
from kit.live.gpu_view import VIEW, as_a_slice, seen
from kit.live.real_pods import (
    RealPods,
    assigned,
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
from kit.real_node.trying_tenants import pages

#: Seconds over which shares are compared.
SPAN = 8.0
HOLD = "import time; time.sleep(3600)"
# Pods that shall meet on one GPU name `alnair-in-order`: where they meet by the default profile
# depends on what pods before asked for.


def limits(cluster: LocalCluster, name: str) -> dict[str, tuple[str, int, int]]:
    """The limits of a pod's containers by the vGPU server: GPU, MiB and percent."""
    return {
        one["pod"]["container"]: (share["uuid"], share["memory_mib"], share["compute_percent"])
        for one in (known["assignment"] for known in agent_status(cluster)["containers"])
        if one["pod"]["name"] == name
        for share in one["shares"]
    }


async def test_two_pods_on_one_gpu_have_their_shares_of_its_time(pods: RealPods) -> None:
    made = [
        await pods.start(
            pod(
                f"share-{percent}",
                busy(limits=sliced(8192, percent)),
                scheduler=names.IN_ORDER,
            )
        )
        for percent in (60, 30)
    ]
    assert gpu(made[0]) == gpu(made[1])
    both = [one["metadata"]["name"] for one in made]

    async def are_held() -> bool:
        """Over the last seconds; a machine that has much else to do makes the fake GPU's slip."""
        logs = [await pods.log(name) for name in both]
        last = min((reports(text) or [{"time": 0.0}])[-1]["time"] for text in logs)
        seconds, parts = shares(logs, after=last - SPAN)
        if seconds < SPAN - 1:
            return False
        large, small = parts
        # Of each other, and of the GPU.
        return (
            large == pytest.approx(2 * small, rel=0.15)
            and large == pytest.approx(0.6, rel=0.15)
            and small == pytest.approx(0.3, rel=0.15)
        )

    await until(are_held, f"60 % and 30 % of the GPU's time over {SPAN:g} s")


async def test_what_is_beyond_a_slice_is_refused_and_the_pod_beside_goes_on(
    pods: RealPods,
) -> None:
    calm = busy("--memory-mib", 6000, limits=sliced(8192, 40))
    beside = await pods.start(pod("beside", calm, scheduler=names.IN_ORDER))
    greedy = ["cuda_load", "--memory-mib", "5000"]
    asks = container(images.CUDA, *greedy, limits=sliced(4096, 40))
    await pods.create(pod("greedy", asks, scheduler=names.IN_ORDER))
    assert "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY" in await pods.failed("greedy")
    before = reports(await pods.says("beside", "}"))[-1]["kernels"]

    async def goes_on() -> bool:
        return reports(await pods.log("beside"))[-1]["kernels"] > before

    await until(goes_on, "the pod beside goes on")
    assert reports(await pods.log("beside"))[-1]["total_mib"] == 8192
    found = await pods.get("beside")
    assert found["status"]["containerStatuses"][0]["restartCount"] == 0
    assert gpu(beside) == gpu(await pods.get("greedy"))


async def test_a_pod_that_asks_for_it_goes_beyond_its_slice_in_the_hosts_memory(
    cluster: LocalCluster, pods: RealPods
) -> None:
    asked = {names.VGPU_MEMORY_POLICY: "swap", names.VGPU_HOST_MEMORY: "6000"}
    load = busy("--memory-mib", 5000, limits=sliced(4096, 10))
    await pods.start(pod("swaps", load, annotations=asked))
    assert reports(await pods.says("swaps", "}"))[-1]["total_mib"] == 4096
    [one] = [
        known
        for known in agent_status(cluster)["containers"]
        if known["assignment"]["pod"]["name"] == "swaps"
    ]
    assert one["assignment"]["shares"][0]["swap_mib"] == 6000
    assert one["swapped_bytes"] == [5000 << 20]
    assert one["held_bytes"][0] <= 4096 << 20


async def test_a_pod_that_asks_for_it_borrows_of_its_gpu_what_nobody_was_granted(
    cluster: LocalCluster, pods: RealPods
) -> None:
    load = busy("--memory-mib", 5000, limits=sliced(4096, 10))
    asked = {names.VGPU_MEMORY_POLICY: "soft"}
    borrower = pod("borrows", load, annotations=asked, scheduler=names.IN_ORDER)
    await pods.start(borrower)
    assert reports(await pods.says("borrows", "}"))[-1]["total_mib"] == 4096
    [one] = [
        known
        for known in agent_status(cluster)["containers"]
        if known["assignment"]["pod"]["name"] == "borrows"
    ]
    assert one["held_bytes"][0] > 5000 << 20
    assert one["held_bytes"][0] <= (4096 << 20) + one["lent_bytes"][0]
    # Its owner comes for all the rest of the GPU, and has it after the ten seconds that a
    # borrower is given (the only test in which a pod that broke no rule is ended).
    total = agent_status(cluster)["gpus"][0]["memory_mib"]
    rest = python(HOLD, limits=sliced(total - 4096, 10))
    await pods.start(pod("owner", rest, scheduler=names.IN_ORDER))
    assert gpu(await pods.get("owner")) == one["assignment"]["shares"][0]["uuid"]
    with pytest.raises(NotFound):
        await pods.get("borrows")


async def test_a_slice_is_all_that_cuda_and_nvml_show_of_the_gpu(pods: RealPods) -> None:
    await pods.create(pod("view", python(VIEW, limits=sliced(5000, 20))))
    text = await pods.ended("view")
    assert seen(text) == as_a_slice(5000, gpu(await pods.get("view")))


async def test_a_pod_with_a_whole_gpu_sees_this_one_without_limits(pods: RealPods) -> None:
    # Another pod has a slice of the first GPU, so the second one is free.
    await pods.start(pod("first", busy(limits=sliced(1024, 10))))
    await pods.create(pod("whole", python(VIEW, limits={names.GPU: "1"})))
    text = await pods.ended("whole")
    found = await pods.get("whole")
    assert gpu(found) != gpu(await pods.get("first"))
    (part,) = assigned(found)["main"]
    view = seen(text)
    shown = [view.pop(key) for key in ("total", "info", "nvml_total")]
    one = {"cuda": 1, "nvml": 1, "uuid": part["uuid"]}
    assert view == {**one, "limited": False, "preload": False}
    # What CUDA shows lacks what the driver keeps for itself.
    assert min(shown) > 0.98 * part["memory_mib"], shown


async def test_every_container_of_a_pod_has_its_own_slice_of_one_gpu(
    cluster: LocalCluster, pods: RealPods
) -> None:
    view_and_hold = f"{VIEW}\n{HOLD}"
    asked = {"prepares": (2048, 20), "beside": (1024, 10), "one": (4096, 30), "two": (3072, 25)}

    def its(name: str) -> dict[str, Any]:
        return {"name": name, "limits": sliced(*asked[name])}

    made = pod(
        "many",
        python(view_and_hold, **its("one")),
        python(view_and_hold, **its("two")),
        initContainers=[
            python(VIEW, **its("prepares")),
            python(view_and_hold, **its("beside"), restartPolicy="Always"),
        ],
    )
    found = await pods.start(made)
    uuid = gpu(found, "one")
    for name, (memory, _) in asked.items():
        assert seen(await pods.says("many", "}", name)) == as_a_slice(memory, uuid)
    expected = {name: (uuid, *amounts) for name, amounts in asked.items()}
    assert await asyncio.to_thread(limits, cluster, "many") == expected


async def test_limits_hold_again_in_a_container_that_was_restarted(pods: RealPods) -> None:
    too_much = "import ctypes as c; print(cuda.cuMemAlloc_v2(c.byref(c.c_uint64()), 3 << 30))"
    again = python(f"{VIEW}\n{too_much}", limits=sliced(2048, 20))
    await pods.create(pod("again", again, restartPolicy="Always"))

    async def was_restarted() -> bool:
        status = (await pods.get("again"))["status"].get("containerStatuses", [{}])[0]
        return bool(status.get("restartCount", 0) >= 1 and status["lastState"])

    await until(was_restarted, "the container has been restarted")

    text = ""

    async def has_said() -> bool:
        nonlocal text
        try:
            text = await pods.log("again")
        except ApiError:  # it is being started
            return False
        return text.count("\n") == 2

    # And it is not asked again: by then it may begin once more.
    await until(has_said, "it has run once more")
    assert seen(text) == as_a_slice(2048, gpu(await pods.get("again")))
    assert text.splitlines()[1] == "2", "CUDA_ERROR_OUT_OF_MEMORY"


async def test_a_pod_of_another_scheduler_is_given_a_gpu_and_held_to_its_slice(
    cluster: LocalCluster, pods: RealPods
) -> None:
    view_and_hold = python(f"{VIEW}\n{HOLD}", limits=sliced(3000, 35))
    await pods.start(pod("foreign", view_and_hold, scheduler="default-scheduler"))
    found = await pods.get("foreign")
    uuid = gpu(found)
    assert seen(await pods.says("foreign", "}")) == as_a_slice(3000, uuid)
    said = await asyncio.to_thread(limits, cluster, "foreign")
    assert said == {"main": (uuid, 3000, 35)}


async def test_a_pod_of_another_scheduler_that_fits_on_no_gpu_is_refused_and_replaced(
    cluster: LocalCluster, pods: RealPods
) -> None:
    async def is_empty() -> bool:
        return not pages(cluster)

    # Pods of the test before are gone from the API server some moments before their processes are.
    await until(is_empty, "nobody has a slice any more")
    # Each GPU is more than half full, so that what is left of both is more than fits on one.
    other = {"scheduler": "default-scheduler"}
    for name in ("full-a", "full-b"):
        await pods.start(pod(name, python(HOLD, limits=sliced(50_000, 60)), **other))
    nowhere = python(HOLD, limits=sliced(40_000, 30))
    made = await pods.create(pod("nowhere", nowhere, **other))
    event = await pods.event(made, START_REFUSED)
    assert "no GPUs of this node have room for it" in event["message"]
    await pods.gone("nowhere")


async def test_metrics_of_the_agent_are_read_from_a_pod(client: Client, pods: RealPods) -> None:
    await pods.start(pod("counted", python(f"{VIEW}\n{HOLD}", limits=sliced(1500, 15))))
    node = await client.get(NODES, NAME)
    address = next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")
    ask = (
        "import urllib.request as u\n"
        f"print(u.urlopen('http://{address}:{AGENT_PORT}/metrics', timeout=60).read().decode())"
    )
    await pods.create(pod("prometheus", python(ask)))
    lines = (await pods.ended("prometheus")).splitlines()
    of_pod = [line for line in lines if 'pod="counted"' in line]
    (limit,) = (line for line in of_pod if line.startswith("alnair_vgpu_memory_limit_bytes{"))
    assert float(limit.split()[-1]) == 1500 << 20
    (share,) = (line for line in of_pod if line.startswith("alnair_vgpu_compute_guaranteed_ratio{"))
    assert float(share.split()[-1]) == 0.15


async def test_what_a_pod_had_is_taken_back_when_it_is_gone(
    cluster: LocalCluster, pods: RealPods
) -> None:
    await pods.start(pod("short", python(HOLD, limits=sliced(1000, 10))))
    assert await asyncio.to_thread(limits, cluster, "short")
    await pods.delete("short")
    with pytest.raises(NotFound):
        await pods.get("short")

    async def is_forgotten() -> bool:
        return not await asyncio.to_thread(limits, cluster, "short")

    await until(is_forgotten, "the vGPU server has forgotten it")

"""What the agent's profiler says of real pods, beside what they did and what the kernel counted."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from alnair.kube.client import Client
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import cgroups
from alnair.local.real_node.settings import NAME, cgroup_name
from alnair.model import names, usage
from alnair.model.usage import PodUsage
from kit.live.gpu_view import VIEW
from kit.live.real_pods import (
    RealPods,
    assigned,
    busy,
    gpu,
    pod,
    python,
    reports,
    shares,
    sliced,
    until,
)
from kit.real_node.agent_pages import AgentPages
from kit.real_node.kubelet_pages import RIGHT, KubeletPages
from kit.real_node.pod_series import by_time, mean, within

#: Seconds over which figures are compared.
SPAN = 8.0
MIB = 1 << 20
#: Computes half of the time for some seconds, and more after it stood still; says how many times
#: 10 ms it had done at each tenth of a second, and holds its GPU.
HALF = """
import ctypes, json, sys, time
sys.path.insert(0, "/usr/local/bin")
from cuda_load import KERNEL
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    assert result == 0, (name, result)
device, context = ctypes.c_int(), ctypes.c_void_p()
memory, module, kernel = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(3000 << 20))
call("cuModuleLoadData", ctypes.byref(module), KERNEL.format(ns=10_000_000).encode())
call("cuModuleGetFunction", ctypes.byref(kernel), module, b"ns_10000000")
launched, began, done = 0, time.time(), []
while time.time() < began + 14:
    call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    call("cuCtxSynchronize")
    launched += 1
    while len(done) < 10 * (time.time() - began):
        done.append(launched)
    time.sleep(max(0.0, began + launched * 0.02 - time.time()))
ended = time.time()
done.append(launched)
print(json.dumps({"began": began, "ended": ended, "done": done}), flush=True)
time.sleep(3600)
"""
#: Uses five seconds of a processor, 100 MiB, and writes 64 MiB; then it holds what it has.
WORK = """
import mmap, os, time
held = bytearray(100 << 20)
held[::4096] = b"x" * len(held[::4096])
began = time.monotonic()
while time.process_time() < 5.1:  # it may run some ms ahead of the group's clock
    pass
took = time.monotonic() - began
block = mmap.mmap(-1, 1 << 20)
try:
    file = os.open("/tmp/written", os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
except OSError:
    file = os.open("/tmp/written", os.O_WRONLY | os.O_CREAT | os.O_SYNC, 0o600)
for _ in range(64):
    os.write(file, block)
os.fsync(file)
print("done", took, flush=True)
time.sleep(3600)
"""
LISTENER = """
import socket, time
s = socket.create_server(("", 7000))
got, _ = s.accept()
count = 0
while data := got.recv(1 << 16):
    count += len(data)
print("received", count, flush=True)
time.sleep(3600)
"""
TALKER = """
import socket, time
s = socket.create_connection(("{address}", 7000), 30)
for _ in range(20):
    s.sendall(bytes(1 << 20))
s.close()
print("sent", flush=True)
time.sleep(3600)
"""


async def test_two_pods_of_one_gpu_are_told_apart(agent: AgentPages, pods: RealPods) -> None:
    # Where they meet by the default profile depends on what pods before asked for.
    made = [
        await pods.start(
            pod(
                f"told-{percent}",
                busy("--memory-mib", memory, limits=sliced(8192, percent)),
                scheduler=names.IN_ORDER,
            )
        )
        for percent, memory in ((60, 4000), (30, 1000))
    ]
    assert gpu(made[0]) == gpu(made[1])
    both = [one["metadata"]["name"] for one in made]
    seen: list[Any] = []

    async def are_told() -> bool:
        logs = [await pods.log(name) for name in both]
        last = min((reports(text) or [{"time": 0.0}])[-1]["time"] for text in logs)
        seconds, truth = shares(logs, after=last - SPAN)
        if seconds < SPAN - 1:
            return False
        found = [await agent.series(one) for one in made]
        said = [mean(one, usage.GPU_UTIL, last - seconds, last) for one in found]
        seen[:] = [truth, said]
        one, other = (by_time(each, usage.GPU_UTIL, last - seconds, last) for each in found)
        # Of a busy machine's seconds one of the two may lack some.
        sums = [one[at] + other[at] for at in one.keys() & other.keys()]
        assert all(both <= 100.01 for both in sums), sums
        near = all(abs(100 * a - b) <= 3 for a, b in zip(truth, said, strict=True))
        return bool(sums) and near

    try:
        await until(are_told, "figures within 3 points of the kernels' time")
    finally:
        print("truth and said:", seen)
    for name in both:
        said = await agent.value("alnair_container_gpu_memory_used_bytes", pod=name)
        truth = await agent.value("alnair_vgpu_memory_driver_bytes", pod=name)
        assert said is not None
        assert truth is not None
        print(name, said / MIB, truth / MIB)
        assert abs(said - truth) <= 2 * MIB
    large, small = [
        await agent.value("alnair_container_gpu_memory_used_bytes", pod=name) for name in both
    ]
    assert large is not None
    assert small is not None
    assert abs(large - small - 3000 * MIB) <= 2 * MIB


async def test_a_pod_with_a_whole_gpu_is_measured_and_shows_0_when_it_stops(
    agent: AgentPages, pods: RealPods
) -> None:
    await pods.start(pod("half", python(HALF, limits={names.GPU: "1"})))
    found = await pods.get("half")
    said = json.loads(await pods.says("half", "}"))

    async def after() -> list[float]:
        series = await agent.series(found)
        return within(series, usage.GPU_UTIL, said["ended"], said["ended"] + 60)

    async def was_looked_at() -> bool:
        return len(await after()) >= 4

    await until(was_looked_at, "some looks since it stopped")
    series = await agent.series(found)
    # Each look tells of all since the one before, and both are compared over the same time: who
    # stood still before it does more afterwards.
    looks = [*by_time(series, usage.GPU_UTIL, said["began"], said["ended"]).items()]
    begin, end = looks[0][0], looks[-1][0]
    measured = sum(now * (at - before) for (before, _), (at, now) in pairwise(looks)) / (
        end - begin
    )
    last = len(said["done"]) - 1
    done = [said["done"][min(last, int(10 * (at - said["began"])))] for at in (begin, end)]
    truth = 100 * 0.01 * (done[1] - done[0]) / (end - begin)
    print("truth and said:", truth, measured, series.metrics[usage.GPU_UTIL])
    assert end - begin >= 6
    assert measured == pytest.approx(truth, abs=3)
    assert set((await after())[2:]) == {0.0}, "an idle pod shows 0 after two looks"
    late = by_time(series, usage.GPU_UTIL, said["ended"] - 5, said["ended"] + 60)
    # A look tells of all since the one before, and a busy machine may have held that up.
    idle = [now for (at, _), (_, now) in pairwise(late.items()) if at >= said["ended"] + 1]
    assert idle
    assert set(idle) == {0.0}, "an idle pod shows 0 within 2 s"
    memory = series.metrics[usage.GPU_MEMORY_MIB][-1]
    assert memory is not None
    assert memory >= 3000
    # It is idle, and it is shown: as 0, and with what it was given.
    assert await agent.value("alnair_container_gpu_utilization_ratio", pod="half") == 0
    running = [one for one in (await agent.usage()).running if one.pod == "half"]
    assert [gpu_.whole for gpu_ in running[0].gpus] == [True]
    assert running[0].energy_j is None or running[0].energy_j > 0


async def test_calls_on_a_whole_gpu_are_counted_where_the_pod_asks_for_it(
    agent: AgentPages, pods: RealPods
) -> None:
    asks = {names.COUNT_CALLS: "true"}
    found = await pods.start(pod("calls", busy(limits={names.GPU: "1"}), annotations=asks))

    async def are_counted() -> bool:
        counted = await agent.value("alnair_vgpu_calls_total", pod="calls", **{"class": "launch"})
        return (counted or 0.0) > 100

    await until(are_counted, "its launches are counted")
    (part,) = assigned(found)["main"]

    async def has_reported() -> bool:
        return bool(reports(await pods.log("calls")))

    await until(has_reported, "it says what it sees of the GPU")
    assert reports(await pods.log("calls"))[-1]["total_mib"] > 0.98 * part["memory_mib"]
    assert await agent.value("alnair_vgpu_memory_limit_bytes", pod="calls") == 0
    assert await agent.value("alnair_vgpu_violation", pod="calls") == 0

    async def is_whole() -> bool:
        running = [one for one in (await agent.usage()).running if one.pod == "calls"]
        return [gpu_.whole for one in running for gpu_ in one.gpus] == [True]

    await until(is_whole, "it has the GPU as a whole")


def folders(cluster: LocalCluster, uid: str) -> list[Path]:
    """A pod's group in every hierarchy, as the machine has them."""
    root = cgroup_name(cluster.layout)
    # Groups of other pods go meanwhile, which Path.glob takes for an error.
    return [
        Path(inside, name)
        for hierarchy in cgroups.hierarchies()
        for inside, below, _ in os.walk(hierarchy / root / "kubepods")
        for name in below
        if name == f"pod{uid}"
    ]


def kernel(cluster: LocalCluster, uid: str) -> dict[str, float]:
    """What the kernel counted of a pod: sums over its containers, by files of v1 or v2."""
    found = {"cpu": 0.0, "written": 0.0, "memory": 0.0}
    for folder in folders(cluster, uid):
        for one in (path for path in folder.iterdir() if path.is_dir()):
            for name, key in (("cpuacct.usage", "cpu"), ("memory.usage_in_bytes", "memory")):
                if (one / name).exists():
                    found[key] += int((one / name).read_text())
            if (one / "memory.stat").exists():
                lines = dict(
                    line.split() for line in (one / "memory.stat").read_text().splitlines()
                )
                found["memory"] -= int(lines.get("total_inactive_file", lines["inactive_file"]))
            if (one / "memory.current").exists():
                found["memory"] += int((one / "memory.current").read_text())
                lines = dict(line.split() for line in (one / "cpu.stat").read_text().splitlines())
                found["cpu"] += 1000 * int(lines["usage_usec"])
            for name in ("blkio.throttle.io_service_bytes_recursive", "io.stat"):
                if (one / name).exists():
                    found["written"] += written((one / name).read_text())
    return found


def written(text: str) -> float:
    v1 = [line.split()[2] for line in text.splitlines() if " Write " in line]
    v2 = [word[7:] for word in text.split() if word.startswith("wbytes=")]
    return float(sum(map(int, v1 + v2)))


async def test_processor_memory_and_disk_are_what_the_kernel_counted(
    agent: AgentPages,
    pods: RealPods,
    cluster: LocalCluster,
    client: Client,
    address: str,
    tmp_path: Path,
) -> None:
    kubelet = KubeletPages(cluster, address.partition(":")[0], tmp_path)
    found = await pods.start(pod("works", python(WORK, limits={"cpu": "1"})))
    uid = found["metadata"]["uid"]
    took = float((await pods.says("works", "done")).split()[-1])
    truth: dict[str, float] = {}
    used = 0.0

    async def is_told() -> bool:  # by the look after its work
        nonlocal used
        truth.update(await asyncio.to_thread(kernel, cluster, uid))
        used = await agent.value("alnair_container_cpu_usage_seconds_total", pod="works") or 0.0
        memory = await agent.value("alnair_container_memory_working_set_bytes", pod="works")
        put = await agent.value("alnair_container_io_written_bytes_total", pod="works")
        print(truth, used, memory, put)
        # The sandbox of the pod has some milliseconds and some hundred KiB, which are no
        # container's. On v1, kernels count disks only where they limit them; then processes tell.
        return bool(
            used == pytest.approx(truth["cpu"] / 1e9, rel=0.03)
            and memory == pytest.approx(truth["memory"], rel=0.03)
            and put == pytest.approx(truth["written"] or 64 * MIB, rel=0.03)
        )

    await until(is_told, "what the kernel counted")
    assert used >= 5
    # And the kubelet's page says the same, once it was made anew; to whom it may.
    await kubelet.sign_up(client)
    refusal = "403 Forbidden: give the agent's account the right get on nodes/metrics"

    async def is_refused() -> bool:  # who asks gives a busy kubelet 5 s
        problem, containers = await kubelet.of(uid)
        assert not containers
        return refusal in problem

    await until(is_refused, refusal)
    await kubelet.sign_up(client, RIGHT)

    async def tells_the_same() -> bool:
        problem, containers = await kubelet.of(uid)
        print("the kubelet's page:", problem, containers, truth)
        if problem or not containers:  # the kubelet keeps what it refused for half a minute
            return False
        cpu, memory = (sum(each) for each in zip(*containers.values(), strict=True))
        return bool(
            cpu == pytest.approx(truth["cpu"], rel=0.03)
            and memory == pytest.approx(truth["memory"], rel=0.03)
        )

    await until(tells_the_same, "the kubelet's page is as new as the work is old")
    # And its digest says how it was.
    (running,) = [one for one in (await agent.usage()).running if one.uid == uid]
    cores = running.metrics[usage.CPU_CORES]
    # The first seconds pass before the API server tells what the container is called.
    assert 0.4 * used <= cores.mean * cores.seconds <= 1.05 * used
    # What a busy machine gave it, it used; its limit is one processor.
    assert 0.5 * min(1.0, 5 / took) <= cores.max <= 1.3


def received(pid: str) -> int:
    """Bytes that came into a process's network."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    return sum(int(line.split(":")[1].split()[0]) for line in lines if "lo:" not in line)


async def test_a_pods_network_is_what_the_kernel_counted(
    agent: AgentPages, pods: RealPods, cluster: LocalCluster
) -> None:
    listener = await pods.start(pod("listens", python(LISTENER)))
    at = listener["status"]["podIP"]
    await pods.start(pod("talks", python(TALKER.replace("{address}", at))))
    assert await pods.says("listens", "received") == f"received {20 * MIB}\n"
    pids = [
        pid
        for folder in folders(cluster, listener["metadata"]["uid"])
        for one in folder.iterdir()
        if one.is_dir()
        for pid in (one / "cgroup.procs").read_text().split()
    ]

    async def is_told() -> bool:  # by the look after the last byte
        truth = await asyncio.to_thread(received, pids[0])
        said = await agent.value("alnair_pod_network_received_bytes_total", pod="listens")
        print(said, truth)
        assert truth >= 20 * MIB
        return bool(said == pytest.approx(truth, rel=0.03))

    await until(is_told, "what the kernel counted")


async def test_a_deleted_pods_figures_wait_in_the_outbox_and_its_series_end(
    agent: AgentPages, pods: RealPods
) -> None:
    program = python(f"{VIEW}\nimport time; time.sleep(3600)", limits=sliced(2000, 20))
    found = await pods.start(pod("leaves", program))
    uid = found["metadata"]["uid"]

    async def is_measured() -> bool:
        return any(
            one.uid == uid
            and one.gpus
            and list(one.containers) == ["main"]
            and {usage.GPU_UTIL, usage.MEMORY_MIB} <= one.metrics.keys()
            and one.metrics[usage.MEMORY_MIB].max > 5
            for one in (await agent.usage()).running
        )

    await until(is_measured, "the pod is in the books, with all that is asked for below")
    before = (await agent.usage()).last
    await pods.delete("leaves")
    kept: list[PodUsage] = []

    async def has_ended() -> bool:
        kept[:] = [one.usage for one in (await agent.usage()).ended if one.usage.uid == uid]
        return bool(kept)

    await until(has_ended, "the pod is in the outbox")
    assert (await agent.usage()).last > before
    (one,) = kept
    assert (one.namespace, one.pod, list(one.containers)) == ("default", "leaves", ["main"])
    assert one.ended is not None
    assert [part.memory_mib for part in one.gpus] == [2000]
    assert one.metrics[usage.GPU_UTIL].max <= 5
    assert one.metrics[usage.MEMORY_MIB].max > 5
    assert await agent.value("alnair_container_memory_working_set_bytes", pod="leaves") is None


async def test_a_killed_kubelet_and_containerd_change_no_figures(
    agent: AgentPages, pods: RealPods, cluster: LocalCluster
) -> None:
    made = [
        await pods.start(
            pod(f"stays-{percent}", busy("--memory-mib", 500, limits=sliced(4096, percent)))
        )
        for percent in (60, 30)
    ]
    await until(lambda: _are_known(agent, made), "both are in the books")
    began, seconds = time.time(), 0

    async def count() -> None:
        """Seconds in which this machine did not stand still."""
        nonlocal seconds
        while True:
            await asyncio.sleep(1)
            seconds += 1

    counting = asyncio.create_task(count())
    for program in ("containerd", "kubelet"):
        await cluster.stop(program, signal.SIGKILL)
    await asyncio.sleep(3)
    await LocalCluster(cluster.name, root=cluster.layout.root).up()
    await asyncio.sleep(3)
    ended = time.time()
    counting.cancel()
    # A kubelet that has just come knows no logs yet.
    logs = [await pods.says(one["metadata"]["name"], "}") for one in made]
    # Of the same seconds: it may take some more until each has its log.
    _, truth = shares(logs, after=began, before=ended)
    for found, part in zip(made, truth, strict=True):
        series = await agent.series(found)
        there = within(series, usage.GPU_UTIL, began - 1, ended)
        print(part, there)
        assert len(there) >= 0.8 * (seconds - 1), "each second was measured"
        assert sum(there) / len(there) == pytest.approx(100 * part, abs=5)
        now = await pods.get(found["metadata"]["name"])
        assert now["metadata"]["uid"] == found["metadata"]["uid"]
        assert [one["restartCount"] for one in now["status"]["containerStatuses"]] == [0]
    page = await agent.usage()
    uids = {one["metadata"]["uid"] for one in made}
    assert uids <= {one.uid for one in page.running}
    assert not uids & {one.usage.uid for one in page.ended}


async def _are_known(agent: AgentPages, made: Iterable[Any]) -> bool:
    known = {one.uid for one in (await agent.usage()).running}
    return {one["metadata"]["uid"] for one in made} <= known


async def test_a_pod_from_a_file_has_its_own_figures(
    agent: AgentPages, pods: RealPods, cluster: LocalCluster
) -> None:
    manifest = pod("static", python(WORK))
    manifest["metadata"]["namespace"] = "default"
    node = cluster.real_node()
    assert node is not None
    folder = node.static_pods
    (folder / "static.json").write_text(json.dumps(manifest))
    name = f"static-{NAME}"
    try:
        await pods.says(name, "done")
        found = await pods.get(name)

        async def is_measured() -> bool:
            running = [one for one in (await agent.usage()).running if one.pod == name]
            memory = running[0].metrics.get(usage.MEMORY_MIB) if running else None
            return memory is not None and memory.max > 100

        await until(is_measured, "the pod is in the books")
        hash_ = found["metadata"]["annotations"]["kubernetes.io/config.hash"]
        assert hash_ != found["metadata"]["uid"]

        async def is_told() -> bool:  # by the look after its last second of work
            truth = await asyncio.to_thread(kernel, cluster, hash_)
            said = await agent.value("alnair_container_cpu_usage_seconds_total", pod=name)
            return bool(said == pytest.approx(truth["cpu"] / 1e9, rel=0.03))

        await until(is_told, "its processor time is told")
        (running,) = [one for one in (await agent.usage()).running if one.pod == name]
        assert running.uid == found["metadata"]["uid"]
    finally:
        (folder / "static.json").unlink()
        await pods.gone(name)

"""What the agent's profiler says of real pods, beside what they did and what the kernel counted."""

import asyncio
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from alnair.kube.client import Client
from alnair.kube.resources import NODES
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import cgroups
from alnair.local.real_node.settings import AGENT_PORT, NAME, cgroup_name
from alnair.model import names, usage
from alnair.model.usage import PodUsage
from alnair.model.usage_feed import PodSeries, UsagePage
from kit.live.agent_in_node import run_in_node
from kit.live.gpu_view import VIEW
from kit.live.real_pods import RealPods, busy, gpu, pod, python, reports, shares, sliced, until

#: Seconds over which figures are compared.
SPAN = 8.0
MIB = 1 << 20
#: Computes half of the time for some seconds, says how much it was, and holds its GPU.
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
launched, began = 0, time.time()
while time.time() < began + 14:
    call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    call("cuCtxSynchronize")
    launched += 1
    time.sleep(max(0.0, began + launched * 0.02 - time.time()))
ended = time.time()
print(json.dumps({"began": began, "ended": ended, "busy": launched * 0.01}), flush=True)
time.sleep(3600)
"""
#: Uses five seconds of a processor, 100 MiB, and writes 64 MiB; then it holds what it has.
WORK = """
import mmap, os, time
held = bytearray(100 << 20)
held[::4096] = b"x" * len(held[::4096])
while time.process_time() < 5:
    pass
block = mmap.mmap(-1, 1 << 20)
try:
    file = os.open("/tmp/written", os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o600)
except OSError:
    file = os.open("/tmp/written", os.O_WRONLY | os.O_CREAT | os.O_SYNC, 0o600)
for _ in range(64):
    os.write(file, block)
os.fsync(file)
print("done", flush=True)
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


@pytest.fixture
async def address(client: Client) -> str:
    """Of the agent."""
    node = await client.get(NODES, NAME)
    found = node["status"]["addresses"]
    return f"{next(a['address'] for a in found if a['type'] == 'InternalIP')}:{AGENT_PORT}"


class Agent:
    """Asked in the node."""

    def __init__(self, cluster: LocalCluster, address: str) -> None:
        self._cluster = cluster
        self._address = address

    async def page(self, path: str) -> str:
        ask = (
            "import sys, urllib.request as u\n"
            "sys.stdout.write(u.urlopen(sys.argv[1], timeout=10).read().decode())"
        )
        url = f"http://{self._address}{path}"
        return await asyncio.to_thread(run_in_node, self._cluster, sys.executable, "-c", ask, url)

    async def series(self, found: Any) -> PodSeries:
        """A pod's last minutes."""
        text = await self.page(f"/v1/series?pod={found['metadata']['uid']}")
        return msgspec.json.decode(text, type=PodSeries)

    async def metrics(self) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
        """Name → labels → value."""
        found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
        for family in text_string_to_metric_families(await self.page("/metrics")):
            for sample in family.samples:
                found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
        return found

    async def value(self, name: str, **labels: str) -> float | None:
        """The sum of a metric's samples with these labels; None without any."""
        samples = (await self.metrics()).get(name, {})
        found = [value for key, value in samples.items() if labels.items() <= dict(key).items()]
        return sum(found) if found else None

    async def usage(self) -> UsagePage:
        return msgspec.json.decode(await self.page("/v1/usage"), type=UsagePage)


@pytest.fixture
def agent(cluster: LocalCluster, address: str) -> Agent:
    return Agent(cluster, address)


def mean(series: PodSeries, metric: str, begin: float, end: float) -> float:
    """Of the samples whose second lies in a time."""
    values = within(series, metric, begin, end)
    return sum(values) / max(1, len(values))


def within(series: PodSeries, metric: str, begin: float, end: float) -> list[float]:
    columns: Iterable[float | None] = series.metrics.get(metric, [])
    return [
        value
        for at, value in zip(series.times, columns, strict=False)
        if value is not None and begin + 1 <= at <= end
    ]


async def test_two_pods_of_one_gpu_are_told_apart(agent: Agent, pods: RealPods) -> None:
    made = [
        await pods.start(
            pod(f"told-{percent}", busy("--memory-mib", memory, limits=sliced(8192, percent)))
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
        every = [within(one, usage.GPU_UTIL, last - seconds, last) for one in found]
        sums = [sum(pair) for pair in zip(*every, strict=False)]
        assert max(sums) <= 100.01, sums
        return all(abs(100 * a - b) <= 3 for a, b in zip(truth, said, strict=True))

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
    agent: Agent, pods: RealPods
) -> None:
    await pods.start(pod("half", python(HALF, limits={names.GPU: "1"})))
    found = await pods.get("half")
    said = json.loads(await pods.says("half", "}"))
    await asyncio.sleep(4)
    series = await agent.series(found)
    truth = 100 * said["busy"] / (said["ended"] - said["began"])
    measured = mean(series, usage.GPU_UTIL, said["began"] + 1, said["ended"])
    print("truth and said:", truth, measured, series.metrics[usage.GPU_UTIL])
    assert measured == pytest.approx(truth, abs=3)
    idle = within(series, usage.GPU_UTIL, said["ended"] + 1, said["ended"] + 60)
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


def folders(cluster: LocalCluster, uid: str) -> list[Path]:
    """A pod's group in every hierarchy, as the machine has them."""
    root = cgroup_name(cluster.layout)
    return [
        found
        for hierarchy in cgroups.hierarchies()
        for found in (hierarchy / root).glob(f"kubepods/**/pod{uid}")
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
    agent: Agent, pods: RealPods, cluster: LocalCluster
) -> None:
    found = await pods.start(pod("works", python(WORK, limits={"cpu": "1"})))
    uid = found["metadata"]["uid"]
    await pods.says("works", "done")
    await asyncio.sleep(2.5)
    truth = await asyncio.to_thread(kernel, cluster, uid)
    said = {
        "cpu": await agent.value("alnair_container_cpu_usage_seconds_total", pod="works"),
        "memory": await agent.value("alnair_container_memory_working_set_bytes", pod="works"),
        "written": await agent.value("alnair_container_io_written_bytes_total", pod="works"),
    }
    print(truth, said)
    assert said["cpu"] is not None
    # The sandbox of the pod has some milliseconds and some hundred KiB, which are no container's.
    assert said["cpu"] == pytest.approx(truth["cpu"] / 1e9, rel=0.03)
    assert said["cpu"] >= 5
    assert said["memory"] == pytest.approx(truth["memory"], rel=0.03)
    # On v1, kernels count disks only where they limit them.
    assert said["written"] is None or said["written"] == pytest.approx(truth["written"], rel=0.03)
    assert (said["written"] is None) <= (truth["written"] == 0)
    # And its digest says how it was.
    (running,) = [one for one in (await agent.usage()).running if one.uid == uid]
    cores = running.metrics[usage.CPU_CORES]
    # The first seconds pass before the API server tells what the container is called.
    assert 0.4 * said["cpu"] <= cores.mean * cores.seconds <= 1.05 * said["cpu"]
    assert 0.5 <= cores.max <= 1.3, "its limit is one processor"


def received(pid: str) -> int:
    """Bytes that came into a process's network."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    return sum(int(line.split(":")[1].split()[0]) for line in lines if "lo:" not in line)


async def test_a_pods_network_is_what_the_kernel_counted(
    agent: Agent, pods: RealPods, cluster: LocalCluster
) -> None:
    listener = await pods.start(pod("listens", python(LISTENER)))
    at = listener["status"]["podIP"]
    await pods.start(pod("talks", python(TALKER.replace("{address}", at))))
    assert await pods.says("listens", "received") == f"received {20 * MIB}\n"
    await asyncio.sleep(2.5)
    pids = [
        pid
        for folder in folders(cluster, listener["metadata"]["uid"])
        for one in folder.iterdir()
        if one.is_dir()
        for pid in (one / "cgroup.procs").read_text().split()
    ]
    truth = await asyncio.to_thread(received, pids[0])
    said = await agent.value("alnair_pod_network_received_bytes_total", pod="listens")
    print(said, truth)
    assert truth >= 20 * MIB
    assert said == pytest.approx(truth, rel=0.03)


async def test_a_deleted_pods_figures_wait_in_the_outbox_and_its_series_end(
    agent: Agent, pods: RealPods
) -> None:
    program = python(f"{VIEW}\nimport time; time.sleep(3600)", limits=sliced(2000, 20))
    found = await pods.start(pod("leaves", program))
    uid = found["metadata"]["uid"]

    async def is_seen() -> bool:
        return any(one.uid == uid for one in (await agent.usage()).running)

    await until(is_seen, "the pod is in the books")
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

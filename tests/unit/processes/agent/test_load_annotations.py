"""What is written of measured load: changes only, and nothing that is no more."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from alnair.kube.client import Client
from alnair.model import names, usage
from alnair.model.api_types import GpuLoadAnnotation, PodUtilization
from alnair.node.load import GpuLoad, GpusLoad
from alnair.node.nvml import NvmlGpu
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.processes.agent.load_annotations import REFRESH, LoadAnnotations, is_steady, utilization
from alnair.processes.agent.profiler.pod_profiler import PodProfiler
from alnair.profiler.pods.write_budget import BURST, FIGURES_RATE
from alnair.profiler.samples import GpuSample
from alnair.sharing.load import PodLoad
from kit.fault_server import FaultServer, serving, status

POD = OwningPod("ns", "train", "uid-1")
GPUS = (NvmlGpu(0, "A", "Tesla T4", 1 << 34), NvmlGpu(1, "B", "T", 1 << 34))
GOLDEN = Path(__file__).parents[3] / "golden"
NOON = 1_795_348_800.0


class Objects(FaultServer):
    """Takes what is applied; `refusal` is the answer in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[tuple[str, dict[str, Any]]] = []
        self.refusal = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response({"metadata": {"name": "n", "uid": f"uid-{len(self.applied)}"}})
        if self.refusal:
            return web.json_response(status(self.refusal, "Conflict"), status=self.refusal)
        assert request.query["fieldManager"] == "alnair-agent-profiler"
        body = json.loads(await request.text())
        self.applied.append((request.path, body["metadata"]))
        return web.json_response({"metadata": body["metadata"]})

    def take(self) -> dict[str, dict[str, Any]]:
        """The annotations that were applied since the last time, by the end of the path."""
        found = {
            path.rsplit("/", 1)[1]: {k: json.loads(v) for k, v in meta["annotations"].items()}
            for path, meta in self.applied
        }
        self.applied.clear()
        return found


class Loads:
    """As `GpusLoad`, saying what a test wants."""

    def __init__(self) -> None:
        self.of_gpus: dict[str, GpuLoad] = {}
        self.of_pods: dict[OwningPod, PodLoad | None] = {}

    def gpus(self) -> dict[str, GpuLoad]:
        return self.of_gpus

    def pods(self) -> dict[OwningPod, PodLoad | None]:
        return self.of_pods


@pytest.fixture
async def server() -> AsyncIterator[Objects]:
    async with serving(Objects()) as found:
        yield cast("Objects", found)


@pytest.fixture
async def client(server: Objects) -> AsyncIterator[Client]:
    async with Client(server.connection, timeout=5) as found:
        yield found


@pytest.fixture
def loads() -> Loads:
    return Loads()


class Clock:
    """Seconds since the epoch, as a test wants them."""

    now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def writer(client: Client, loads: Loads, clock: Clock) -> LoadAnnotations:
    load = cast("GpusLoad", loads)
    return LoadAnnotations(client, "n", lambda: GPUS, load, now=clock)


class Profiled:
    """As `PodProfiler`, saying what a test wants."""

    def __init__(self) -> None:
        sample = GpuSample(1.0, memory_copy=12.34)
        self.samples = {"A": sample}
        self.links = {"A": {usage.PCIE_RX_MIB_S: 10.0, usage.PCIE_TX_MIB_S: 5.55}}
        self.finals: dict[str, dict[str, float]] = {}
        self.of_pods: dict[str, dict[str, tuple[float | None, float]]] = {}

    def values(self, uid: str) -> dict[str, tuple[float | None, float]]:
        return self.of_pods.get(uid, {})


async def test_gpus_are_written_when_they_change_and_go_when_they_are_silent(
    server: Objects, loads: Loads, writer: LoadAnnotations, clock: Clock
) -> None:
    loads.of_gpus = {"A": GpuLoad(10.04, 100 << 20, 30.0), "B": GpuLoad(0.0, 0, 30.0)}
    await writer.write()
    written = server.take()["n"]
    assert written[f"{names.GPU_LOAD}0"] == {
        "v": 1,
        "t": "2026-11-22T12:00:00Z",
        "uuid": "A",
        "util": 10.0,
        "memory_used_mib": 100,
        "window_s": 30.0,
        "architecture": "turing",
        "memory_mib": 16384,
    }
    loads.of_gpus["A"] = GpuLoad(11.9, 163 << 20, 30.0)
    clock.now += 60
    await writer.write()
    assert server.take() == {}
    loads.of_gpus["A"] = GpuLoad(12.1, 163 << 20, 30.0)
    await writer.write()
    assert server.take()["n"][f"{names.GPU_LOAD}0"]["util"] == 12.1
    loads.of_gpus["A"] = GpuLoad(30.0, 163 << 20, 30.0)
    await writer.write()
    assert server.take() == {}, "a small change waits for a minute to have passed"
    loads.of_gpus["A"] = GpuLoad(40.0, 163 << 20, 30.0)
    await writer.write()
    assert server.take()["n"][f"{names.GPU_LOAD}0"]["util"] == 40.0, "a large one does not"
    del loads.of_gpus["A"]
    await writer.write()
    assert list(server.take()["n"]) == [f"{names.GPU_LOAD}1"]


async def test_a_node_is_told_again_now_and_then_what_has_not_changed(
    server: Objects, client: Client, loads: Loads
) -> None:
    clock = [NOON]
    load = cast("GpusLoad", loads)
    writer = LoadAnnotations(client, "n", lambda: GPUS, load, now=lambda: clock[0])
    loads.of_gpus = {"A": GpuLoad(10.0, 0, 30.0)}
    await writer.write()
    written = server.take()
    clock[0] += REFRESH - 1
    await writer.write()
    assert server.take() == {}
    clock[0] += 1
    await writer.write()
    assert server.take() == written


async def test_what_an_agent_before_wrote_goes_though_nothing_is_measured(
    server: Objects, loads: Loads, writer: LoadAnnotations
) -> None:
    loads.of_pods = {POD: None}
    await writer.write()
    assert server.take() == {"n": {}, "train": {}}
    await writer.write()
    assert server.take() == {}


async def test_a_pods_use_and_idleness_are_written_until_it_is_unknown_or_gone(
    server: Objects, loads: Loads, writer: LoadAnnotations
) -> None:
    await writer.write()
    server.take()
    loads.of_pods = {POD: PodLoad(50.0)}
    await writer.write()
    busy = {"v": 1, "t": "2026-11-22T12:00:00Z", "gpu": 50.0}
    assert server.applied[0][1]["uid"] == "uid-1"
    assert server.take() == {"train": {names.UTILIZATION: busy}}
    loads.of_pods = {POD: PodLoad(0.0, 90.0)}
    await writer.write()
    idle = {**busy, "gpu": 0.0, "idle_since": "2026-11-22T11:58:30Z"}
    assert server.take() == {"train": {names.UTILIZATION: idle}}
    loads.of_pods = {POD: None}
    await writer.write()
    assert server.take() == {"train": {}}, "what is not measured is not idle"
    loads.of_pods = {}
    server.refusal = 409
    await writer.write()
    server.refusal = 0
    await writer.write()
    assert server.take() == {}


async def test_a_write_that_failed_is_made_again(
    server: Objects, loads: Loads, writer: LoadAnnotations, caplog: pytest.LogCaptureFixture
) -> None:
    loads.of_gpus = {"A": GpuLoad(10.0, 0, 30.0)}
    server.refusal = 409
    await writer.write()
    await writer.write()
    assert caplog.text.count("measured load is not written: node n: ") == 1
    server.refusal = 0
    await writer.write()
    assert server.take()["n"]


@pytest.mark.parametrize(
    ("new", "steady"),
    [
        (GpuLoadAnnotation(1, "t", "A", 11.9, 163, 30.0), True),
        (GpuLoadAnnotation(1, "t", "A", 12.0, 100, 30.0), False),
        (GpuLoadAnnotation(1, "t", "A", 10.0, 164, 30.0), False),
        (GpuLoadAnnotation(1, "t", "B", 10.0, 100, 30.0), False),
        (GpuLoadAnnotation(1, "t", "A", 10.0, 100, 60.0), False),
    ],
)
def test_small_changes_are_none(new: GpuLoadAnnotation, *, steady: bool) -> None:
    assert is_steady(GpuLoadAnnotation(1, "t", "A", 10.0, 100, 30.0), new) is steady


def test_idleness_that_goes_on_keeps_its_begin() -> None:
    old = utilization(None, PodLoad(0.0, 60.0), NOON)
    assert utilization(old, PodLoad(0.4, 92.0), NOON + 30.0) is old
    again = utilization(old, PodLoad(0.0, 60.0), NOON + 300.0)
    assert again.idle_since == "2026-11-22T12:04:00Z"
    assert utilization(old, PodLoad(0.0), NOON) == PodUtilization(1, "2026-11-22T12:00:00Z", 0.0)


async def test_current_and_largest_figures_are_written_with_those_of_gpus_and_stay_at_the_end(
    server: Objects, client: Client, loads: Loads, clock: Clock
) -> None:
    profiled = Profiled()
    load, profiler = cast("GpusLoad", loads), cast("PodProfiler", profiled)
    writer = LoadAnnotations(client, "n", lambda: GPUS, load, profiler, now=clock)
    loads.of_gpus = {"A": GpuLoad(10.0, 0, 30.0)}
    loads.of_pods = {POD: PodLoad(40.0)}
    values = profiled.of_pods["uid-1"] = {
        usage.GPU_UTIL: (39.0, 80.0),
        usage.GPU_MEMORY_MIB: (1234.5678, 2000.0),
        usage.CPU_PRESSURE: (0.5, 0.5),
    }
    await writer.write()
    written = server.take()
    golden = {
        name: json.loads((GOLDEN / f"{name}.json").read_text())
        for name in ("gpu-load-profiled", "pod-utilization")
    }
    assert written["n"][f"{names.GPU_LOAD}0"] == golden["gpu-load-profiled"]
    assert written["train"][names.UTILIZATION] == golden["pod-utilization"]
    values[usage.GPU_MEMORY_MIB] = (1300.0, 2090.0)
    clock.now += 60
    await writer.write()
    assert server.take() == {}, "less than a twentieth more"
    values[usage.GPU_MEMORY_MIB] = (1300.0, 2200.0)
    await writer.write()
    assert server.take()["train"][names.UTILIZATION]["maximum"]["gpu_memory_mib"] == 2200.0
    # Its processes end: what it used now goes, what it used at most stays.
    loads.of_pods = {}
    profiled.finals["uid-1"] = {usage.GPU_UTIL: 90.0}
    profiled.of_pods["uid-1"] = {usage.GPU_UTIL: (None, 90.0)}
    await writer.write()
    assert server.take()["train"][names.UTILIZATION] == {
        "v": 1,
        "t": "2026-11-22T12:01:00Z",
        "gpu": 0.0,
        "maximum": {"gpu_util": 90.0},
    }
    await writer.write()
    assert server.take() == {}


async def test_when_all_is_news_begins_and_ends_are_told_and_the_rest_at_its_rate(
    server: Objects, loads: Loads, writer: LoadAnnotations, clock: Clock
) -> None:
    noisy = [OwningPod("ns", f"noisy-{number}", f"uid-{number}") for number in range(30)]
    told: dict[str, int] = {}
    for look in range(400):
        clock.now += 30
        level = 90.0 if look % 2 else 10.0
        loads.of_pods = dict.fromkeys(noisy, PodLoad(level))
        loads.of_gpus = {"A": GpuLoad(level, 0, 30.0)}
        begun = OwningPod("ns", f"new-{look}", f"new-{look}")
        if look > 200:
            loads.of_pods[begun] = PodLoad(50.0)
        await writer.write()
        written = server.take()
        for name in written:
            told[name] = told.get(name, 0) + 1
        if look > 200:
            assert begun.name in written
            assert look == 201 or f"new-{look - 1}" in written, "it has ended"
    assert {pod.name for pod in noisy} <= told.keys()
    assert sum(told.values()) <= 400 * 30 * FIGURES_RATE + 2 * 199 + BURST

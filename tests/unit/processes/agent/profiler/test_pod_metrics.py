"""What /metrics says of pods: names as users know them, no more series than there may be."""

import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from alnair.model.api_types import Workload
from alnair.model.job_facts import Figure, ModelFacts
from alnair.node.gpu_looks import GpuLook
from alnair.node.inventory import GpuFacts, Inventory
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.processes.agent.profiler.gpu_device_metrics import gpu_device_metrics
from alnair.processes.agent.profiler.legacy_metrics import legacy_metrics
from alnair.processes.agent.profiler.pod_metrics import pod_metrics
from alnair.profiler.samples import CgroupSample, GpuSample, NetworkSample, ProcessSample
from alnair.serving.exposition import text_of
from kit.described_metrics import described
from kit.fake_cgroups import OTHER, UID
from kit.profiled_node import GPU, MIB, ProfiledNode

GOLDEN = Path(__file__).parents[4] / "golden"
SECOND = "7" * 8 + UID[8:]


@pytest.fixture
def node(tmp_path: Path) -> ProfiledNode:
    return ProfiledNode(tmp_path)


async def everything(node: ProfiledNode) -> None:
    """Let every family have samples."""
    path = node.pod()
    node.machine.process(17, path)
    node.machine.proc.joinpath("17", "stat").write_text("17 (x) R" + " 1" * 18 + " 4242 0\n")
    for _ in range(3):
        await node.second(ProcessSample(17, 40.0, 5.0, 100 * MIB), path=path)
    account = node.profiler.accounts.pods[UID]
    account.network = NetworkSample(1.0, 5, 7)
    node.profiler.workloads[UID] = Workload(
        1,
        "",
        "training",
        "pytorch",
        0.5,
        "training",
        progress=0.25,
        eta_s=90,
        bottleneck="GPU-bound",
        model=ModelFacts(parameters=Figure(1e8, "log"), weights_mib=Figure(200.0, "estimated")),
        idle_since="2026-11-21T12:00:00Z",
        memory_full_s=600.0,
        slowdown=1.2,
    )
    account.samples["main"] = msgspec.structs.replace(
        account.samples["main"], periods=9, throttled_periods=2, throttled_ns=10**9
    )


def value(text: str, name: str, **labels: str) -> float:
    """The one sample with these labels."""
    (found,) = (
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )
    return found


async def test_names_types_labels_and_helps_are_those_that_users_know(node: ProfiledNode) -> None:
    await everything(node)
    text = text_of(pod_metrics(node.profiler))
    golden = GOLDEN / "metrics-of-pods.tsv"
    assert described(text) == golden.read_text().splitlines()


async def test_gpus_say_what_the_driver_knows_of_them(node: ProfiledNode) -> None:
    sample = GpuSample(
        time.monotonic(),
        memory_copy=25.0,
        memory_total=80 << 30,
        power_w=300.0,
        temperature_c=60.0,
        energy_j=5.5,
        pcie_rx=1,
        nvlink_tx=2,
        throttle=("sw_power_cap",),
        profiling={"sm_active": 0.5},
    )
    node.profiler.take(GpuLook(sample.at, 1, {}, {}, samples={GPU: sample}))
    inventory = Inventory("1", (GpuFacts(0, GPU, "NVIDIA H100", 81_559, 0),))
    text = text_of(gpu_device_metrics(node.profiler, inventory))
    assert described(text) == (GOLDEN / "metrics-of-gpus.tsv").read_text().splitlines()
    assert value(text, "alnair_gpu_memory_copy_ratio", gpu=GPU, node="n1") == 0.25
    assert value(text, "alnair_gpu_link_bytes_total", link="nvlink", direction="sent") == 2
    assert value(text, "alnair_gpu_throttled", reason="sw_power_cap") == 1
    node.profiler.take(GpuLook(sample.at, 1, {}, {}, samples={GPU: GpuSample(sample.at)}))
    text = text_of(gpu_device_metrics(node.profiler, inventory))
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == 1, "what is not measured has no series"


async def test_figures_are_those_of_the_kernel_and_the_driver(node: ProfiledNode) -> None:
    await everything(node)
    text = text_of(pod_metrics(node.profiler))
    of = {"namespace": "team", "pod": "train", "node": "n1"}
    main = {**of, "container": "main"}
    assert value(text, "alnair_container_gpu_utilization_ratio", **main, gpu=GPU) == 0.4
    assert value(text, "alnair_container_gpu_memory_used_bytes", **main) == 100 * MIB
    assert value(text, "alnair_container_cpu_usage_seconds_total", **main) == 1.5
    assert value(text, "alnair_container_pressure_seconds_total", resource="io") == 72e-6
    assert value(text, "alnair_pod_gpu_utilization_ratio", **of, stat="p95") == 0.4
    assert value(text, "alnair_pod_owner_info", owner_kind="Job", owner_name="nightly") == 1
    assert value(text, "alnair_unmapped_processes", gpu=GPU) == 0
    assert value(text, "alnair_scrape_age_seconds") < 60


async def test_an_idle_gpu_shows_0_and_a_pod_that_ended_nothing(node: ProfiledNode) -> None:
    path = node.pod()
    await node.second(path=path)
    text = text_of(pod_metrics(node.profiler))
    assert value(text, "alnair_container_gpu_utilization_ratio", pod="train", gpu=GPU) == 0
    assert value(text, "alnair_gpu_attribution_differs", kind="given-and-idle") == 1
    shutil.rmtree((node.machine.root / path[1:]).parent)
    await node.second()
    text = text_of(pod_metrics(node.profiler))
    assert 'pod="train"' not in text
    assert value(text, "alnair_profiler_outbox_pods") == 1


async def test_no_more_series_than_may_be_and_gpus_come_first(node: ProfiledNode) -> None:
    node.pod(name="with-gpu")
    node.pod(SECOND, OTHER, name="a-without")
    node.given.pop()
    await node.second()
    for most, shown, left_out in ((1000, 2, 0), (45, 1, 1), (5, 0, 2)):
        text = text_of(pod_metrics(node.profiler, most))
        assert [f'pod="{name}"' in text for name in ("with-gpu", "a-without")] == [
            shown > 0,
            shown > 1,
        ]
        assert value(text, "alnair_profiler_left_out", what="pods") == left_out
        lines = [line for line in text.splitlines() if "pod=" in line]
        assert len(lines) <= most


async def test_a_pod_that_was_made_anew_has_its_series_once(node: ProfiledNode) -> None:
    node.pod()
    await node.second()
    node.pod(SECOND, OTHER)
    await node.second()
    text = text_of(pod_metrics(node.profiler))
    lines = [line.split(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))


async def test_the_originals_metrics_have_their_names(node: ProfiledNode, tmp_path: Path) -> None:
    await everything(node)
    pod = OwningPod("team", "train", UID, "main")
    container = SimpleNamespace(
        assignment=ContainerSlices("c", ContainerMatch(pod=UID), (Share(GPU, 1024),), pod),
        totals=SimpleNamespace(devices=[{"launches": 5}]),
        held=lambda _: 7 * MIB,
        since=0.0,
    )
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4\ncpu0 10 2 30 400 5\nintr 5\n")
    inventory = Inventory("1", (GpuFacts(0, GPU, "NVIDIA H100", 81_559, 0),))
    families = legacy_metrics(node.profiler, [cast("Any", container)], inventory, stat)
    text = text_of(families)
    assert described(text) == (GOLDEN / "metrics-of-the-original.tsv").read_text().splitlines()
    of = {"pod_name": "train", "gpu_uuid": GPU, "gpu_idx": "0", "nodeName": "n1"}
    assert value(text, "alnair_gpu_util", **of) == 40
    assert value(text, "alnair_gpu_mem_used", **of) == 100 * MIB
    assert value(text, "alnair_cuda_launch_kernel_cnt", pod_name="train") == 5
    assert value(text, "alnair_cpustat_time_user_hertz_total", cpu="0", mode="idle") == 400


def test_a_pod_counts_for_no_fewer_series_than_it_has() -> None:
    full = CgroupSample(1.0, 1, 1, 1, 1, 1, 1, 1, 1, 1, {"cpu": 1, "memory": 1, "io": 1})
    fields = len([one for one in msgspec.structs.astuple(full)[1:-1] if one]) + len(full.pressure)
    assert fields <= 14

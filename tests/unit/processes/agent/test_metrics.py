"""What /metrics of the agent says of its containers."""

from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from prometheus_client.parser import text_string_to_metric_families

from alnair.node.gpu_driver import GpuDriver
from alnair.node.gpu_looks import GpuLook
from alnair.node.health import GpusHealth
from alnair.node.isolation import Isolation
from alnair.node.load import GpusLoad
from alnair.node.nvml import Usage
from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.node.vgpu.context_costs import ContextCosts
from alnair.node.vgpu.inspection import Inspection
from alnair.node.vgpu.server import VgpuServer
from alnair.processes.agent.enforcement import Enforcement
from alnair.processes.agent.gpu_metrics import gpu_metrics
from alnair.processes.agent.metrics import metrics
from alnair.processes.agent.slice_labels import SliceLabels
from alnair.serving.exposition import text_of
from alnair.sharing.tiers import NodeFacts, offer
from alnair.sharing.violations import Kind, Policy
from kit.described_metrics import described

GOLDEN = Path(__file__).parents[3] / "golden" / "metrics-of-the-agent.tsv"
GPU = "GPU-00000000-0000-0000-0000-000000000001"


async def everything(folder: Path) -> str:
    """A page on which every family has samples."""
    async with VgpuServer(folder) as server:
        pod = OwningPod("default", "train", "uid-1", "main")
        server.prepare(
            ContainerSlices("a", ContainerMatch(pod="uid-1"), (Share(GPU, 1024, 50),), pod)
        )
        driver = cast("GpuDriver", SimpleNamespace(opened=1, problem="", gpus=(), version="1"))
        inspection = Inspection(server, Policy.WARN, lambda *_: None)
        inspection.confirmed["a", GPU, Kind.MEMORY] = 2
        inspection.strays.seen[GPU, "pod"] = 1
        costs = ContextCosts(server)
        costs.known[GPU] = 1 << 29
        isolation = Isolation(server)
        isolation.offer = offer(NodeFacts(driver="1", interposer="", accounting=""))
        isolation.mps = cast("Any", SimpleNamespace(health=SimpleNamespace(clients=(), restarts=0)))
        enforcement = Enforcement(None, "n")
        labels = SliceLabels("n", {"uid-1": ("Job", "night")}.__getitem__)
        own = metrics(server, driver, inspection, enforcement, isolation, costs, labels)
        health, load = GpusHealth(lambda: None), GpusLoad(server.containers)
        for take in (health.take, load.take):
            take(GpuLook(0.0, 1, {GPU: Usage(40.0, 1 << 30, {"MIG-1": 1 << 20})}, {}, ((GPU, 31),)))
        return text_of(chain(own, gpu_metrics(health, load)))


async def test_names_types_labels_and_helps_are_those_that_users_know(tmp_path: Path) -> None:
    assert described(await everything(tmp_path)) == GOLDEN.read_text().splitlines()


async def test_a_slice_says_its_node_gpu_pod_container_and_what_made_the_pod(
    tmp_path: Path,
) -> None:
    labels = {
        "node": "n", "gpu": GPU, "namespace": "default", "pod": "train", "container": "main",
        "owner_kind": "Job", "owner_name": "night",
    }  # fmt: skip
    limits = [
        sample.labels
        for family in text_string_to_metric_families(await everything(tmp_path))
        for sample in family.samples
        if sample.name == "alnair_vgpu_memory_limit_bytes"
    ]
    assert limits == [labels]

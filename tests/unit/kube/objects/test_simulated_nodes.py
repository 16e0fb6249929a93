"""What is published for a simulated node."""

import msgspec
import pytest

from alnair.kube.objects import simulated_nodes
from alnair.model.api_types import GpuStatic
from alnair.model.gpu_models import MODELS
from alnair.traces.openb import TraceNode

NOW = "2026-01-01T00:00:00Z"


def test_a_gpu_has_the_same_identity_in_every_cluster_and_no_other_has_it() -> None:
    node = TraceNode("n", 1000, 1, 8, "H100")
    first = [gpu.uuid for gpu in simulated_nodes.gpus(node)]
    assert first == [gpu.uuid for gpu in simulated_nodes.gpus(node)]
    assert len(set(first)) == 8
    assert all(len(one) == 40 and one.startswith("GPU-") for one in first)
    other = simulated_nodes.gpus(msgspec.structs.replace(node, name="m"))
    assert not set(first) & {gpu.uuid for gpu in other}


@pytest.mark.parametrize("model", MODELS)
def test_every_gpu_is_linked_to_every_other_both_ways_alike(model: str) -> None:
    found = simulated_nodes.gpus(TraceNode("n", 1000, 1, 4, model))
    for one in found:
        others = {str(gpu.index) for gpu in found} - {str(one.index)}
        assert one.links.keys() == others
        assert all(found[int(i)].links[str(one.index)] == kind for i, kind in one.links.items())


def test_gpus_of_one_socket_are_nearer_unless_nvlink_joins_all() -> None:
    plain = simulated_nodes.gpus(TraceNode("n", 1000, 1, 4, "T4"))
    assert plain[0].links == {"1": "NODE", "2": "SYS", "3": "SYS"}
    joined = simulated_nodes.gpus(TraceNode("n", 1000, 1, 4, "H100"))
    assert joined[0].links == {"1": "NV18", "2": "NV18", "3": "NV18"}


@pytest.mark.parametrize(("milli", "cpu"), [(64_000, "64"), (1_500, "1500m"), (999, "999m")])
def test_cpus_are_exact(milli: int, cpu: str) -> None:
    assert simulated_nodes.capacity(TraceNode("n", milli, 1, 0, ""))["cpu"] == cpu


def test_shares_add_up_over_the_gpus_of_a_node() -> None:
    found = simulated_nodes.capacity(TraceNode("n", 64_000, 262_144, 2, "P100"))
    assert found["nvidia.com/gpu"] == "2"
    assert found["alnair/vgpu"] == "200"
    assert found["alnair/vgpu-memory"] == "32768"
    assert found["alnair/vgpu-compute"] == "200"
    assert found["memory"] == str(262_144 * 2**20)


def test_a_node_without_gpus_has_nothing_of_them() -> None:
    document = simulated_nodes.manifest(TraceNode("n", 1000, 1, 0, ""), NOW)
    assert "nvidia.com/gpu.product" not in document["metadata"]["labels"]
    assert document["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert document["status"]["capacity"].keys() == {"cpu", "memory", "pods", "ephemeral-storage"}


def test_the_annotation_is_compact_json_of_its_type() -> None:
    document = simulated_nodes.manifest(TraceNode("n", 1000, 1, 2, "T4"), NOW)
    text = document["metadata"]["annotations"]["ai.centaurus.io/gpu-static"]
    static = msgspec.json.decode(text, type=GpuStatic)
    assert (static.v, static.t) == (1, NOW)
    assert msgspec.json.encode(static).decode() == text
    assert [(gpu.model, gpu.memory_mib) for gpu in static.gpus] == [("T4", 15360)] * 2

"""What a node shall say of its GPUs."""

import msgspec
import pytest

from alnair.model import names
from alnair.model.api_types import GpuStatic
from alnair.processes.agent.node_facts import (
    is_said,
    labels_of,
    product,
    resources_of,
    static_of,
)
from alnair.processes.agent.node_object import NodeSays
from kit.described_gpus import H100, gpu, inventory

PRODUCT = names.GPU_MODEL_LABEL
DASHED = "NVIDIA-H100-80GB-HBM3"
V100 = "Tesla V100-SXM2-16GB"
NOTHING = NodeSays()


def labelled(text: str) -> NodeSays:
    """A node whose product label somebody else wrote."""
    return NodeSays(labels={PRODUCT: text}, theirs=frozenset((PRODUCT,)))


@pytest.mark.parametrize(
    ("model", "label"),
    [
        (H100, DASHED),
        (V100, "Tesla-V100-SXM2-16GB"),
        ("NVIDIA RTX PRO 6000 (Max-Q)", "NVIDIA-RTX-PRO-6000-Max-Q"),
        ("  GPU  ", "GPU"),
        ("GPU 名前", "GPU"),
        ("A" * 80, "A" * 63),
        ("", ""),
    ],
)
def test_a_model_is_spelled_so_that_it_can_be_a_label(model: str, label: str) -> None:
    assert product(model) == label


def test_labels_tell_of_the_most_common_model() -> None:
    mixed = inventory(gpu(0, V100, 16384), gpu(1), gpu(2), gpu(3, V100, 16384, mig=True))
    assert labels_of(mixed) == {
        PRODUCT: DASHED,
        "nvidia.com/gpu.count": "3",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/cuda.driver-version.full": "615.36.01",
        "nvidia.com/cuda.driver-version.major": "615",
        "nvidia.com/cuda.driver-version.minor": "36",
        "nvidia.com/cuda.driver-version.revision": "01",
        "nvidia.com/mig.capable": "true",
    }
    assert labels_of(inventory(gpu(0)))["nvidia.com/mig.capable"] == "false"


def test_mig_devices_are_labelled_by_profile_where_they_are_offered() -> None:
    found = inventory(gpu(0), gpu(1, cut=["1g.10gb", "1g.10gb+me", "1g.10gb"]))
    labels = labels_of(found, serves_mig=True)
    assert labels["nvidia.com/gpu.count"] == "1"
    assert {key: text for key, text in labels.items() if key.startswith("nvidia.com/mig")} == {
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/mig-1g.10gb.count": "2",
        "nvidia.com/mig-1g.10gb.memory": "9856",
        "nvidia.com/mig-1g.10gb.product": f"{DASHED}-MIG-1g.10gb",
        "nvidia.com/mig-1g.10gb.me.count": "1",
        "nvidia.com/mig-1g.10gb.me.memory": "9856",
        "nvidia.com/mig-1g.10gb.me.product": f"{DASHED}-MIG-1g.10gb.me",
    }
    assert "nvidia.com/mig.strategy" not in labels_of(found)


def test_what_is_not_known_gets_no_label() -> None:
    assert labels_of(inventory(driver="")) == {}
    assert labels_of(inventory(driver="550.120")).keys() == {
        "nvidia.com/cuda.driver-version.full",
        "nvidia.com/cuda.driver-version.major",
        "nvidia.com/cuda.driver-version.minor",
    }
    assert labels_of(inventory(driver="not a version")) == {}


def test_gpus_in_mig_mode_are_left_out_with_the_links_to_them() -> None:
    found = static_of(inventory(gpu(0), gpu(1, mig=True), gpu(2)), NOTHING)
    assert [(g.index, g.model, g.memory_mib, g.numa, g.links) for g in found] == [
        (0, DASHED, 81559, 0, {"2": "NV18"}),
        (2, DASHED, 81559, 1, {"0": "NV18"}),
    ]


@pytest.mark.parametrize("label", ["H100", f"{DASHED}-SHARED", DASHED])
def test_the_label_of_another_spells_the_model(label: str) -> None:
    found = static_of(inventory(gpu(0), gpu(1)), labelled(label))
    assert [g.model for g in found] == [label, label]


def test_a_label_of_our_own_does_not_spell_the_model() -> None:
    says = NodeSays(labels={PRODUCT: "stale"})
    assert [g.model for g in static_of(inventory(gpu(0)), says)] == [DASHED]


@pytest.mark.parametrize(
    ("label", "models"),
    [
        (f"{DASHED}-SHARED", [f"{DASHED}-SHARED", "Tesla-V100-SXM2-16GB"]),
        ("Tesla-V100-SXM2-16GB", [DASHED, "Tesla-V100-SXM2-16GB"]),
        ("something-else", [DASHED, "Tesla-V100-SXM2-16GB"]),
    ],
)
def test_of_several_models_the_label_spells_the_one_that_it_names(
    label: str, models: list[str]
) -> None:
    mixed = inventory(gpu(0), gpu(1, V100, 16384))
    assert [g.model for g in static_of(mixed, labelled(label))] == models


def test_the_longer_of_two_names_is_meant() -> None:
    mixed = inventory(gpu(0, "NVIDIA A100"), gpu(1, "NVIDIA A100 PCIe"))
    found = static_of(mixed, labelled("NVIDIA-A100-PCIe-SHARED"))
    assert [g.model for g in found] == ["NVIDIA-A100", "NVIDIA-A100-PCIe-SHARED"]


def test_a_document_is_the_same_whenever_it_was_written() -> None:
    gpus = static_of(inventory(gpu(0), gpu(1)), NOTHING)
    for version, said in ((1, True), (2, False)):
        document = GpuStatic(v=version, t="2026-11-21T12:00:00Z", gpus=gpus)
        assert is_said(gpus, msgspec.json.encode(document).decode()) == said
    assert not is_said(gpus[:1], msgspec.json.encode(GpuStatic(v=1, t="", gpus=gpus)).decode())
    for garbage in ("", "{", "[]", "[" * 100_000):
        assert not is_said(gpus, garbage)


def test_slices_are_of_healthy_gpus_that_are_not_in_mig_mode() -> None:
    found = inventory(gpu(0), gpu(1, mib=40960), gpu(2, mig=True))
    memory, compute = names.VGPU_MEMORY, names.VGPU_COMPUTE
    assert resources_of(found) == {memory: 81559 + 40960, compute: 200}
    sick = {"GPU-0": "it does not answer"}
    assert resources_of(found, sick, 1.5) == {memory: 40960, compute: 150}
    assert resources_of(found, {**sick, "GPU-1": "XID 79"}) == {memory: 0, compute: 0}


def test_an_unhealthy_gpu_is_described_with_what_is_wrong_with_it() -> None:
    found = static_of(inventory(gpu(0), gpu(1)), NOTHING, {"GPU-1": "XID 79"})
    assert [g.problem or "" for g in found] == ["", "XID 79"]
    document = msgspec.json.encode(GpuStatic(v=1, t="", gpus=found)).decode()
    assert document.count("problem") == 1, "of a healthy one, nothing is said"
    assert is_said(found, document)
    assert not is_said(static_of(inventory(gpu(0), gpu(1)), NOTHING), document)

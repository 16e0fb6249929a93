"""What dcgm-exporter serves is read as what it is, and belongs to the pods that it names."""

import pytest

from alnair.profiler.dcgm import Holder, by_pod, read_exposition
from alnair.profiler.samples import GpuSample

MIB = 1 << 20
GPU, OTHER = "GPU-0b4f-1", "GPU-0b4f-2"


def row(field: str, value: object, uuid: str = GPU, **more: str) -> str:
    labels = {
        "gpu": "0",
        "UUID": uuid,
        "pci_bus_id": "00000000:1B:00.0",
        "device": "nvidia0",
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": "node-1",
        "DCGM_FI_DRIVER_VERSION": "550.54.14",
        **more,
    }
    written = ",".join(f'{name}="{label}"' for name, label in labels.items())
    return f"{field}{{{written}}} {value}\n"


TRAIN = {"container": "main", "namespace": "ml", "pod": "train-0"}
EXPOSITION = (
    "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
    "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
    + row("DCGM_FI_DEV_GPU_UTIL", 87, **TRAIN)
    + row("DCGM_FI_DEV_GPU_UTIL", 0, OTHER)
    + "# HELP DCGM_FI_DEV_MEM_COPY_UTIL Memory utilization (in %).\n"
    "# TYPE DCGM_FI_DEV_MEM_COPY_UTIL gauge\n"
    + row("DCGM_FI_DEV_MEM_COPY_UTIL", 31, **TRAIN)
    + row("DCGM_FI_DEV_FB_USED", 40000, **TRAIN)
    + row("DCGM_FI_DEV_FB_FREE", 41000, **TRAIN)
    + row("DCGM_FI_DEV_FB_RESERVED", 559, **TRAIN)
    + row("DCGM_FI_DEV_GPU_TEMP", 61, **TRAIN)
    + row("DCGM_FI_DEV_POWER_USAGE", "512.250000", **TRAIN)
    + "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"
    + row("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 8123456, **TRAIN)
    + row("DCGM_FI_PROF_SM_ACTIVE", "0.712345", **TRAIN)
    + row("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "0.401000", **TRAIN)
    + "# TYPE DCGM_FI_PROF_PCIE_TX_BYTES counter\n"
    + row("DCGM_FI_PROF_PCIE_TX_BYTES", 123456789, **TRAIN)
    + "go_goroutines 12\n"
    'process_open_fds{job="x"} 9 1700000000000\n'
)


def test_figures_of_a_pods_gpu_are_in_the_units_of_samples() -> None:
    (idle, train) = sorted(read_exposition(EXPOSITION, 5.0), key=lambda one: one.holder)
    assert (train.uuid, train.holder) == (GPU, Holder("ml", "train-0", "main"))
    assert train.sample == GpuSample(
        5.0,
        util=87.0,
        memory_copy=31.0,
        memory_bytes=40000 * MIB,
        memory_total=81559 * MIB,
        power_w=512.25,
        temperature_c=61.0,
        energy_j=pytest.approx(8123.456),
        profiling={"sm_active": 0.712345, "tensor_active": 0.401},
    )
    assert (idle.uuid, idle.holder, idle.sample) == (OTHER, Holder(), GpuSample(5.0, util=0.0))
    assert not train.is_shared
    assert not idle.is_shared


def test_gpus_are_joined_by_the_pods_that_hold_them() -> None:
    text = EXPOSITION + row("DCGM_FI_DEV_GPU_UTIL", 50, OTHER, **(TRAIN | {"container": "side"}))
    pods = by_pod(read_exposition(text, 0.0))
    assert {pod: [one.uuid for one in found] for pod, found in pods.items()} == {
        ("ml", "train-0"): [GPU, OTHER]
    }


def test_pods_of_one_name_in_two_namespaces_are_two() -> None:
    text = row("DCGM_FI_DEV_GPU_UTIL", 5, **TRAIN) + row(
        "DCGM_FI_DEV_GPU_UTIL", 6, OTHER, **(TRAIN | {"namespace": "web"})
    )
    assert by_pod(read_exposition(text, 0.0)).keys() == {("ml", "train-0"), ("web", "train-0")}


def test_on_a_gpu_that_several_hold_the_figures_are_told_to_be_shared() -> None:
    text = row("DCGM_FI_DEV_GPU_UTIL", 90, **TRAIN) + row(
        "DCGM_FI_DEV_GPU_UTIL", 90, **(TRAIN | {"pod": "train-1"})
    )
    assert [one.is_shared for one in read_exposition(text, 0.0)] == [True, True]


def test_instances_of_mig_are_apart() -> None:
    text = "".join(
        row("DCGM_FI_DEV_FB_USED", 100 + gi, GPU_I_PROFILE="1g.10gb", GPU_I_ID=str(gi), **TRAIN)
        for gi in (7, 8)
    )
    found = read_exposition(text, 0.0)
    assert [(one.instance, one.sample.memory_bytes) for one in found] == [
        ("7", 107 * MIB),
        ("8", 108 * MIB),
    ]
    assert not any(one.is_shared for one in found)


@pytest.mark.parametrize(
    "labels",
    [
        {"pod_name": "p", "pod_namespace": "n", "container_name": "c"},
        {"exported_pod": "p", "exported_namespace": "n", "exported_container": "c"},
    ],
)
def test_labels_of_older_versions_and_of_prometheus_are_known(labels: dict[str, str]) -> None:
    (found,) = read_exposition(row("DCGM_FI_DEV_GPU_UTIL", 1, **labels), 0.0)
    assert found.holder == Holder("n", "p", "c")


@pytest.mark.parametrize("value", ["NaN", "9223372036854775794", "140737488355328e9"])
def test_what_dcgm_leaves_blank_is_not_there(value: str) -> None:
    text = row("DCGM_FI_DEV_GPU_UTIL", value) + row("DCGM_FI_DEV_GPU_TEMP", 40)
    (found,) = read_exposition(text, 0.0)
    assert (found.sample.util, found.sample.temperature_c) == (None, 40.0)


def test_labels_may_hold_any_character() -> None:
    text = row("DCGM_FI_DEV_GPU_UTIL", 1, modelName='a \\"b\\", {c} \\\\', **TRAIN)
    (found,) = read_exposition(text, 0.0)
    assert found.holder.pod == "train-0"


@pytest.mark.parametrize(
    "line",
    [
        "DCGM_FI_DEV_GPU_UTIL{",
        'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1"} many',
        "DCGM_FI_DEV_GPU_UTIL{UUID=GPU-1} 5",
        "<html>not found</html>",
    ],
)
def test_what_is_no_exposition_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(ValueError, match="line 2 is no line of Prometheus' text format"):
        read_exposition(row("DCGM_FI_DEV_GPU_TEMP", 40) + line + "\n", 0.0)

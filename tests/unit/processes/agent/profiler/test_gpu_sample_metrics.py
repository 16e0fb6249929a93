"""What /metrics says of GPUs by the driver's word."""

from pathlib import Path

from alnair.node.gpu_looks import GpuLook
from alnair.node.inventory import GpuFacts, Inventory
from alnair.processes.agent.profiler.gpu_sample_metrics import FRESH, GpuSamples
from alnair.profiler.samples import GpuSample
from alnair.serving.exposition import text_of
from kit.described_metrics import described
from kit.manual_clock import Clock

GOLDEN = Path(__file__).parents[4] / "golden" / "metrics-of-gpu-samples.tsv"
_INVENTORY = Inventory("1", (GpuFacts(0, "GPU-a", "NVIDIA H100", 81_559, 0),))
_ALL = GpuSample(
    1.0,
    memory_copy=25.0,
    memory_total=85_520_809_984,
    power_w=612.5,
    temperature_c=63.0,
    energy_j=9_000.0,
    pcie_rx=5,
    pcie_tx=6,
    nvlink_rx=7,
    nvlink_tx=8,
    throttle=("sw_power_cap",),
    profiling={"sm_active": 0.5},
)


def _samples(clock: Clock, sample: GpuSample) -> GpuSamples:
    made = GpuSamples("n1", lambda: _INVENTORY, clock.time)
    made.take(GpuLook(clock.now, 1, {}, {}, samples={"GPU-a": sample}))
    return made


def test_names_types_labels_and_helps_are_those_that_users_know() -> None:
    text = text_of(_samples(Clock(), _ALL).metrics())
    assert described(text) == GOLDEN.read_text().splitlines()
    assert 'alnair_gpu_link_bytes_total{direction="sent",gpu="GPU-a",link="nvlink"} 8.0' in text
    assert 'alnair_gpu_memory_copy_ratio{gpu="GPU-a"} 0.25' in text


def test_what_the_driver_does_not_say_is_absent() -> None:
    text = text_of(_samples(Clock(), GpuSample(1.0)).metrics())
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line.split("{")[0] for line in lines] == ["alnair_gpu_info"]


def test_an_old_look_says_nothing_of_now() -> None:
    clock = Clock()
    samples = _samples(clock, _ALL)
    clock.now = FRESH + 1
    assert "alnair_gpu_power_watts{" not in text_of(samples.metrics())

"""What holds a job back is told by figures; where none tells, the answer is unknown."""

import pytest

from alnair.model import usage
from alnair.model.usage import Digest
from alnair.profiler.bottleneck import bottleneck


def digest(mean: float, seconds: float = 600.0) -> Digest:
    return Digest(mean=mean, max=mean, p95=mean, seconds=seconds)


def used(**means: float) -> dict[str, Digest]:
    return {name: digest(mean) for name, mean in means.items()}


@pytest.mark.parametrize(
    ("means", "bound", "metric"),
    [
        ({"gpu_util": 0.5, "cpu_cores": 8}, "idle", usage.GPU_UTIL),
        ({"gpu_util": 97}, "GPU-bound", usage.GPU_UTIL),
        (
            {"gpu_util": 97, "gpu_memory_copy_util": 80},
            "memory-bound",
            usage.GPU_MEMORY_COPY_UTIL,
        ),
        ({"gpu_util": 97, "gpu_memory_copy_util": 40}, "GPU-bound", usage.GPU_UTIL),
        (
            {"gpu_util": 99, "gpu_memory_copy_util": 4, "net_rx_mib_s": 900, "net_tx_mib_s": 910},
            "communication-bound",
            usage.NET_RX_MIB_S,
        ),
        ({"gpu_util": 40, "cpu_pressure": 0.6}, "input-bound", usage.CPU_PRESSURE),
        ({"gpu_util": 40, "io_pressure": 0.3}, "input-bound", usage.IO_PRESSURE),
        ({"gpu_util": 40, "cpu_throttled": 0.5}, "input-bound", usage.CPU_THROTTLED),
        ({"gpu_util": 40, "io_read_mib_s": 900}, "input-bound", usage.IO_READ_MIB_S),
        ({"gpu_util": 40, "net_rx_mib_s": 900, "net_tx_mib_s": 5}, "input-bound", "net_rx_mib_s"),
        (
            {"gpu_util": 40, "net_rx_mib_s": 900, "net_tx_mib_s": 800},
            "communication-bound",
            usage.NET_TX_MIB_S,
        ),
        (
            {"gpu_util": 60, "nvlink_rx_mib_s": 40_000, "nvlink_tx_mib_s": 40_000},
            "communication-bound",
            usage.NVLINK_RX_MIB_S,
        ),
        ({"gpu_util": 40, "memory_pressure": 0.4}, "memory-bound", usage.MEMORY_PRESSURE),
        ({"gpu_util": 40}, "unknown", usage.GPU_UTIL),
        ({"gpu_util": 40, "cpu_cores": 3.9}, "unknown", usage.GPU_UTIL),
    ],
)
def test_the_strongest_figure_tells(means: dict[str, float], bound: str, metric: str) -> None:
    found = bottleneck(used(**means))
    assert found.bound == bound
    assert found.evidence[0].metric == metric


def test_processors_count_as_used_up_only_where_their_limit_is_known() -> None:
    metrics = used(gpu_util=40, cpu_cores=3.9)
    assert bottleneck(metrics, cpu_limit_cores=4).bound == "input-bound"
    assert bottleneck(metrics, cpu_limit_cores=16).bound == "unknown"


def test_the_cause_furthest_beyond_its_bound_is_named() -> None:
    slow_disk = used(gpu_util=40, cpu_pressure=0.21, io_pressure=0.5, memory_pressure=0.2)
    found = bottleneck(slow_disk)
    assert found.bound == "input-bound"
    assert [one.metric for one in found.evidence] == ["io_pressure", "cpu_pressure", "gpu_util"]


def test_the_evidence_says_its_figures_in_words() -> None:
    found = bottleneck(used(gpu_util=40, io_pressure=0.25))
    assert [one.text for one in found.evidence] == [
        "it waits for storage in 25% of the time",
        "the GPU rests for 60 % of the time",
    ]


def test_without_a_measurement_of_the_gpu_nothing_is_concluded() -> None:
    found = bottleneck(used(cpu_pressure=0.9))
    assert found.bound == "unknown"
    assert found.evidence[0].text == "the use of the GPU was not measured"


def test_a_short_time_tells_nothing() -> None:
    found = bottleneck({usage.GPU_UTIL: digest(99, seconds=5)})
    assert found.bound == "unknown"
    assert found.evidence[0].text == "measured for 5 s only: 30 s would tell"

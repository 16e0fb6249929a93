"""What two samples of a counter say of the time between them."""

import msgspec
import pytest

from alnair.model import usage
from alnair.profiler.pods.rates import cgroup_rates, energy, link_rates, network_rates
from alnair.profiler.samples import CgroupSample, GpuSample, NetworkSample

MIB = 1 << 20
BEFORE = CgroupSample(
    10.0,
    cpu_ns=10**9,
    periods=100,
    throttled_periods=10,
    memory_bytes=5 * MIB,
    io_read=MIB,
    io_write=0,
    pressure={"cpu": 1_000_000, "io": 0},
)
AFTER = CgroupSample(
    12.0,
    cpu_ns=4 * 10**9,
    periods=120,
    throttled_periods=15,
    memory_bytes=7 * MIB,
    io_read=5 * MIB,
    io_write=3 * MIB,
    pressure={"cpu": 1_500_000, "io": 5_000_000},
)


def test_counters_become_rates_and_amounts_stay() -> None:
    assert cgroup_rates(BEFORE, AFTER) == {
        usage.CPU_CORES: 1.5,
        usage.CPU_THROTTLED: 0.25,
        usage.MEMORY_MIB: 7.0,
        usage.IO_READ_MIB_S: 2.0,
        usage.IO_WRITE_MIB_S: 1.5,
        usage.CPU_PRESSURE: 0.25,
        usage.IO_PRESSURE: 1.0,
    }
    assert cgroup_rates(None, AFTER) == {usage.MEMORY_MIB: 7.0}


@pytest.mark.parametrize("at", [12.0, 11.0])
def test_without_time_between_there_are_no_rates(at: float) -> None:
    late = msgspec.structs.replace(BEFORE, at=12.0)
    assert cgroup_rates(late, msgspec.structs.replace(AFTER, at=at)) == {usage.MEMORY_MIB: 7.0}


def test_a_counter_that_began_anew_says_nothing() -> None:
    again = msgspec.structs.replace(AFTER, cpu_ns=5, pressure={"cpu": 0})
    found = cgroup_rates(BEFORE, again)
    assert usage.CPU_CORES not in found
    assert usage.CPU_PRESSURE not in found
    assert found[usage.IO_READ_MIB_S] == 2.0
    assert network_rates(NetworkSample(1.0, 9, 9), NetworkSample(2.0, 3, 9 + MIB)) == {
        usage.NET_TX_MIB_S: 1.0
    }
    assert link_rates(GpuSample(1.0, pcie_rx=7), GpuSample(2.0, pcie_rx=6)) == {}


@pytest.mark.parametrize(
    ("before", "after", "joules"),
    [
        (GpuSample(1.0, energy_j=5.0), GpuSample(3.0, energy_j=8.0, power_w=100.0), 3.0),
        (GpuSample(1.0, energy_j=5.0), GpuSample(3.0, energy_j=4.0, power_w=100.0), None),
        (GpuSample(1.0), GpuSample(3.0, power_w=100.0), 200.0),
        (GpuSample(1.0), GpuSample(3.0), None),
        (None, GpuSample(3.0, energy_j=4.0), None),
    ],
)
def test_energy_is_what_the_counter_grew_by_or_power_over_time(
    before: GpuSample | None, after: GpuSample, joules: float | None
) -> None:
    assert energy(before, after) == joules

"""Measured loads are fresh as long as their agent lives, and count what was placed since."""

from alnair.model.nodes import Gpu, GpuLoad
from alnair.scheduler.state.gpus.gpu_loads import (
    HEARTBEAT_SECONDS,
    LEASE_SECONDS,
    SETTLE_SECONDS,
    UNKNOWN,
    Loads,
)

GPUS = (Gpu("GPU-0", 0, "P100", 16384), Gpu("GPU-1", 1, "P100", 16384))
LEASE = "alnair-agent-n"


def measured(when: float, util: float = 50.0) -> tuple[GpuLoad, ...]:
    return (GpuLoad("GPU-0", util, 1000, when),)


def test_a_steady_gpu_never_goes_stale_while_its_agent_lives() -> None:
    loads = Loads()
    loads.renew(LEASE, 1000.0, 1000.0)
    loads.describe(0, GPUS, measured(1000.0), LEASE, 1000.0)
    for when in range(1010, 5000, 10):
        loads.renew(LEASE, when, when)
        assert loads.expire(when) == []
        assert loads.expected_util(slice(0, 1))[:, 0].tolist() == [50.0, UNKNOWN]


def test_a_dead_agents_loads_are_dropped_and_come_back_with_it() -> None:
    loads = Loads()
    loads.renew(LEASE, 1000.0, 1000.0)
    loads.describe(0, GPUS, measured(900.0), LEASE, 1000.0)
    assert loads.next_expiry() == 1000.0 + LEASE_SECONDS
    assert loads.expire(999.0 + LEASE_SECONDS) == []
    assert loads.expire(1000.0 + LEASE_SECONDS) == [0]
    assert loads.util[:, 0].tolist() == [UNKNOWN, UNKNOWN]
    assert loads.renew(LEASE, 1100.0, 1100.0) == [0]
    assert loads.util[0, 0] == 50.0


def test_without_a_lease_a_measurement_counts_for_a_heartbeat() -> None:
    loads = Loads()
    loads.describe(0, GPUS, measured(1000.0), LEASE, 1010.0)
    assert loads.util[0, 0] == 50.0
    assert loads.expire(1000.0 + HEARTBEAT_SECONDS + 1) == [0]
    assert loads.util[0, 0] == UNKNOWN
    loads.describe(0, GPUS, measured(1000.0), LEASE, 2000.0)
    assert loads.util[0, 0] == UNKNOWN


def test_what_was_placed_counts_until_the_measurement_shows_it() -> None:
    loads = Loads()
    loads.renew(LEASE, 1000.0, 1000.0)
    loads.describe(0, GPUS, measured(1000.0), LEASE, 1000.0)
    loads.expect("a", 0, [0], 30.0, 512.0, 1000.0)
    loads.expect("b", 0, [1], 20.0, 0.0, 1000.0)
    assert loads.expected_util(slice(0, 1))[:, 0].tolist() == [80.0, UNKNOWN]
    assert loads.expected_memory(slice(0, 1))[0, 0] == 1512.0
    loads.forget("a")
    assert loads.expected_util(slice(0, 1))[0, 0] == 50.0
    loads.expect("a", 0, [0], 30.0, 512.0, 1030.0)
    loads.renew(LEASE, 1061.0, 1061.0)
    assert loads.expire(1061.0) == [0], "b is measured by now, a is not"
    assert loads.unseen_util[:, 0].tolist() == [30.0, 0.0]
    assert loads.expire(1030.0 + SETTLE_SECONDS + 1) == [0]
    assert not loads.unseen_util.any()


def test_a_row_that_is_described_anew_forgets_its_old_agent() -> None:
    loads = Loads()
    loads.describe(0, GPUS, measured(1000.0), LEASE, 1000.0)
    loads.describe(0, (), (), "", 1000.0)
    assert loads.renew(LEASE, 1001.0, 1001.0) == []
    assert loads.util[:, 0].tolist() == [UNKNOWN, UNKNOWN]

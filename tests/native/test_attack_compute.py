"""Tenants that work against their share of GPU time, and what they get (clients/evade.c)."""

import pytest

from native.shares import Run, Shares, Tenant

PERCENT = 25


def work(trick: str, seconds: float = 4.0) -> Run:
    with Shares([Tenant(trick, PERCENT, program="evade")], seconds) as shares:
        return shares.run()


@pytest.mark.parametrize(
    "trick",
    [
        pytest.param("capture", id="beside a capture that never ends"),
        pytest.param("torn", id="beside a capture whose stream was destroyed"),
        pytest.param("shapes", id="kernels that were never seen"),
        pytest.param("fresh", id="graphs that were never seen"),
    ],
)
def test_no_trick_gains_gpu_time(trick: str) -> None:
    done = work(f"{trick}:ns_5000000")
    # Of the first launches the cost is not known: a debt, which is paid back.
    assert 0.15 <= done.share(0, 1.0, 3.8) <= PERCENT / 100 + 0.02
    assert done.share(0, 0.0, 3.8) <= PERCENT / 100 + 0.05


def test_kernels_that_do_not_end_on_some_streams_stop_nobody_on_others() -> None:
    done = work("stuck:ns_100000_sm64")
    assert done.printed[0][0]["launches"] > 0.15 * 4.0 / 100e-6

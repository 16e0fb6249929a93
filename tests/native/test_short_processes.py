"""Processes that end before what they launched was settled: their container pays all the same."""

import pytest

from native.shares import Shares, Tenant

PERCENT = 25


@pytest.mark.parametrize("environment", [{}, {"KILLED": "1"}], ids=["exit", "are killed"])
def test_short_processes_that_never_wait_for_their_kernels_get_their_share(
    environment: dict[str, str],
) -> None:
    """Each launches eight kernels of 50 ms that are not known yet, and ends when they are done."""
    load = Tenant("ns_50000000", PERCENT, program="short", environment=environment)
    with Shares([load], 12.0, serves=False) as shares:
        done = shares.run()
    assert 0.2 <= done.share(0, 2.0, 11.8) <= PERCENT / 100 + 0.05

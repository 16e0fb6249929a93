"""The control: a limiter that polls utilisation fails on the fake GPU as it does on real ones.

If it held here, the fake would be kinder than a GPU, and what our limiter holds here would prove
little. The failures are those reported of that design (docs/concepts/compute-shares.md).
"""

import pytest

from native import build
from native.shares import FIVE, LONG, TINY, Run, Shares, Tenant

pytestmark = pytest.mark.timing


def naive(*loads: tuple[str, int], seconds: float = 10.0) -> Run:
    flags = "-shared", "-fPIC", "-l:libnvidia-ml.so.1", "-lfakegpu"
    library = str(build.client("naive_limiter", *flags))
    tenants = [
        Tenant(load, preload=library, environment={"NAIVE_PERCENT": str(percent)})
        for load, percent in loads
    ]
    with Shares(tenants, seconds, serves=False) as case:
        return case.run()


def test_a_long_kernel_and_a_wait_in_turn_is_never_held_back() -> None:
    assert naive((LONG, 50)).share(0, 2, 10) >= 0.95


def test_few_blocks_that_run_long_cost_it_nothing() -> None:
    assert naive((FIVE, 50)).share(0, 2, 10) >= 0.95


def test_thirty_and_seventy_come_out_alike() -> None:
    run = naive((FIVE, 30), (FIVE, 70))
    assert run.share(0, 2, 10) >= 0.4
    assert run.share(1, 2, 10) <= 0.6


def test_even_what_it_holds_swings_from_second_to_second() -> None:
    windows = naive((TINY, 50)).windows(0, 2, 9)
    assert sum(abs(share - 0.5) > 0.05 for share in windows) >= len(windows) / 3

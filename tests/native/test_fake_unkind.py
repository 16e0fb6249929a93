"""The fake GPU as unkind as real ones: uneven slices, tails, clock steps, contention, late NVML."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvml
import pytest

from native import build
from native.fake import Fake
from native.timing import PLAIN, begin, finish, script

BUSY = "stream s; launch s ns_1000000 30; sync s; time"


def ends(**options: object) -> list[int]:
    """When two processes of 30 kernels of 1 ms had theirs, nanoseconds."""
    with Fake(**{**PLAIN, "start_threads": 2, **options}) as fake:
        found = finish(*(begin(fake, BUSY, tag=tag) for tag in "ab"))
    return [int(lines[0]) for lines in found]


def test_uneven_slices_are_of_other_lengths_with_each_seed() -> None:
    """Each has the GPU for other slices until one is done; then the other has it alone."""
    even = {min(ends(seed=seed)) for seed in (1, 2, 3)}
    uneven = [ends(seed=seed, slice_uneven=80) for seed in (1, 2, 3)]
    assert len(even) == 1
    assert len({min(each) for each in uneven}) == 3
    assert [max(each) for each in uneven] == pytest.approx([60_000_000] * 3, rel=0.02)
    assert ends(seed=1, slice_uneven=80) == uneven[0]


@pytest.mark.parametrize(("tail", "milliseconds"), [(0, 2.0), (50, 1.75)])
def test_the_last_blocks_of_a_kernel_leave_half_of_the_sms_to_others(
    tail: int, milliseconds: float
) -> None:
    """Half a millisecond on half of the SMs does a quarter of one of the other's."""
    with Fake(**PLAIN, tail=tail) as fake:
        both = "stream s 1; stream t 1; launch s ns_1000000; launch t ns_1000000; sync; time"
        assert int(script(fake, both)[0]) / 1e6 == pytest.approx(milliseconds, rel=0.01)


def test_a_tail_alone_takes_no_longer() -> None:
    with Fake(**PLAIN, tail=30) as fake:
        assert int(script(fake, BUSY)[0]) == pytest.approx(30_000_000, rel=0.01)


def test_kernels_take_longer_while_the_clock_is_low() -> None:
    """In every other 100 ms at 60 %: a second of work takes a second and a quarter."""
    with Fake(**PLAIN, clock_drop=40, clock_ms=100) as fake:
        found = int(script(fake, "stream s; launch s ns_10000000 100; sync s; time")[0])
        assert found == pytest.approx(1_250_000_000, rel=0.04)
        assert fake.work_ns() == pytest.approx(found, rel=0.01)


def test_a_neighbour_at_work_slows_kernels_in_slices_too() -> None:
    assert max(ends(contention=43)) == pytest.approx(2 * 30 * 1.43e6, rel=0.02)
    with Fake(**PLAIN, contention=43) as fake:
        assert int(script(fake, BUSY)[0]) == pytest.approx(30_000_000, rel=0.01)


@contextmanager
def utilisation(**options: object) -> Iterator[tuple[Fake, list[Any]]]:
    """What NVML says of a process that was busy for a second, and then a tenth of the time."""
    text = "stream s; launch s ns_10000000 100; sync s" + 8 * (
        "; launch s ns_16000000; sync s; sleep 150000000"
    )
    ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))
    with Fake(**PLAIN, **options) as fake:
        os.environ["FAKEGPU_STATE"] = str(fake.state)
        try:
            script(fake, text)
            pynvml.nvmlInit()
            try:
                handle = pynvml.nvmlDeviceGetHandleByIndex(0)
                yield fake, list(pynvml.nvmlDeviceGetProcessUtilization(handle, 0))
            finally:
                pynvml.nvmlShutdown()
        finally:
            del os.environ["FAKEGPU_STATE"]


def test_nvml_may_tell_of_the_last_sample_only() -> None:
    with utilisation() as (_, (row,)):
        assert row.smUtil > 40
    with utilisation(util_last=1) as (_, (row,)):
        assert row.smUtil < 20


def test_nvml_may_be_late() -> None:
    with utilisation(util_late_ms=700) as (fake, (row,)):
        late = fake.now_ns() // 1000 - row.timeStamp
    assert 700_000 <= late < 900_000


def test_nvml_may_name_processes_that_are_not_there() -> None:
    with utilisation(util_foreign=4_000_000) as (_, rows):
        assert {row.pid: row.smUtil for row in rows}[4_000_000] == 90


def test_a_profile_may_say_all_of_it(tmp_path: Path) -> None:
    known = (build.ROOT / "native" / "fakegpu" / "profiles" / "h200").read_text()
    profile = tmp_path / "slow"
    profile.write_text(known + "clock_drop 40\nclock_ms 100\nslice_uneven 20\ntail 10\n")
    with Fake(str(profile), **PLAIN) as fake:
        found = int(script(fake, "stream s; launch s ns_10000000 100; sync s; time")[0])
    assert found == pytest.approx(1_250_000_000, rel=0.04)

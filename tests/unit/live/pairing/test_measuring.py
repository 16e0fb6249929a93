"""Rates from the time stamps of logs, whatever the clock of who reads them says."""

import asyncio

import pytest

from alnair.live.pairing import measuring
from alnair.node.pairing.measuring import Times
from alnair.node.pairing.workload import Command, RunError

TIMES = Times(warm_up=10, measured=20, patience=5)
NANO = 10**9


def shown(steps_per_second: float, begins: float, seconds: int = 60) -> measuring._Seen:
    """A log of a line per second, of another year."""
    seen = measuring._Seen("python3", Command(("python3",), r"^step (?P<step>\d+)"))
    for second in range(seconds):
        at = round((begins + second) * NANO)
        seen.take(at, f"step {round(second * steps_per_second)}".encode())
    return seen


def test_both_are_measured_over_the_same_seconds_after_the_warm_up_of_the_later_one() -> None:
    slow_start = shown(10, begins=1000)
    # Half as fast from the moment at which the other one has started.
    other = measuring._Seen("python3", Command(("python3",), r"^step (?P<step>\d+)"))
    done = 0
    for second in range(120):
        done += 20 if second < 40 else 10
        other.take((960 + second) * NANO, f"step {done}".encode())
    found = asyncio.run(measuring._measured([slow_start, other], TIMES))
    assert found == (pytest.approx(10), pytest.approx(10))


def test_a_workload_that_ends_is_told_with_its_last_words() -> None:
    seen = shown(10, 1000, seconds=5)
    seen.take(2000 * NANO, b"out of memory")
    seen.ended = True
    with pytest.raises(RunError, match=r"ended before it was measured[^$]*out of memory"):
        asyncio.run(measuring._measured([seen], TIMES))


def test_a_workload_without_steps_is_told_how_they_are_read() -> None:
    silent = measuring._Seen("python3", Command(("python3",)))
    quick = Times(warm_up=0, measured=0.1, patience=0.2)
    with pytest.raises(RunError, match=r"has shown no step in 0\.2 s: say with --pattern"):
        asyncio.run(measuring._measured([silent], quick))

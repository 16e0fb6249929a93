"""Which tests there are, how long each takes, and all of them one after another, in their time."""

import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

from gpu import (
    beyond_tests,
    compute_tests,
    framework_tests,
    life_tests,
    memory_tests,
    neighbour_tests,
)
from gpu.bench import Bench
from gpu.report import FAILED, Row, judged, skipped


class Test(NamedTuple):
    """One test.

    Attributes:
        run: Makes its rows.
        scaled: Seconds that it takes in full; a smaller scale takes less of them.
        fixed: Seconds that it takes at any scale: starting programs, and an agent's.
    """

    run: Callable[[Bench], list[Row]]
    scaled: float
    fixed: float


#: By number in the table of required figures; seconds as on a GPU whose contexts take 0.3 s.
TESTS: dict[int, Test] = {
    1: Test(memory_tests.every_path, 0, 5),
    2: Test(memory_tests.boundary, 5, 3),
    3: Test(memory_tests.race, 60, 15),
    4: Test(compute_tests.launch_cost, 60, 10),
    5: Test(compute_tests.small_kernels, 110, 15),
    6: Test(compute_tests.shares_alone, 384, 10),
    7: Test(compute_tests.two_tenants, 160, 8),
    8: Test(compute_tests.borrowing, 64, 6),
    9: Test(compute_tests.graphs, 128, 4),
    10: Test(framework_tests.training, 120, 40),
    11: Test(framework_tests.recovery, 0, 30),
    12: Test(life_tests.live_changes, 16, 3),
    13: Test(life_tests.storms, 10, 15),
    14: Test(memory_tests.views, 0, 5),
    15: Test(neighbour_tests.escapes, 0, 30),
    16: Test(neighbour_tests.beside, 0, 10),
    17: Test(beyond_tests.loans, 0, 15),
    18: Test(beyond_tests.suspension, 0, 15),
}


def chosen(text: str | None) -> list[int]:
    """The numbers of `--only`; None: all.

    Raises:
        ValueError: One is none of ours.
    """
    if not text:
        return list(TESTS)
    words = [word.strip() for word in text.split(",")]
    if wrong := [word for word in words if not word.isdecimal() or int(word) not in TESTS]:
        raise ValueError(f"{wrong[0]!r} is none of 1 to {max(TESTS)}")
    return [int(word) for word in words]


def scale(wanted: list[int], minutes: float) -> float:
    """How much of the full times these tests may take, to be done in so many minutes."""
    fixed = sum(TESTS[n].fixed for n in wanted)
    full = sum(TESTS[n].scaled for n in wanted)
    return min(1.0, max(0.02, (60 * minutes - fixed) / full)) if full else 1.0


def run(setup: Bench, wanted: list[int], until: float) -> list[Row]:
    """The rows of these tests; one that breaks or hangs is a failed row, the others go on.

    Args:
        setup: Where and how long.
        wanted: Their numbers.
        until: Monotonic seconds: what has not begun by then is skipped, what runs then is ended.
    """
    shown = setup.machine.nvml.way or "nothing"
    told = judged(0, "NVML tells of processes", "of a context", shown, setup.context > 0)
    rows = [told]
    if problem := setup.tenants.problem:
        print(problem, file=sys.stderr)
        rows.append(
            judged(0, "the vGPU server starts", "yes", " ".join(problem.split())[:80], False)
        )
    for number in wanted:
        began = time.monotonic()
        if began >= until:
            rows.append(skipped(number, "all of it", "no time was left: give --minutes"))
            continue
        try:
            with _ended_by(until - began):
                rows += TESTS[number].run(setup)
        except Exception as error:  # noqa: BLE001 - the other tests still say what they can
            traceback.print_exc()
            rows.append(judged(number, "the test itself", "runs", f"{error}"[:80], False))
        last = [row for row in rows if row.test == number]
        failed = sum(row.verdict == FAILED for row in last)
        print(
            f"test {number}: {time.monotonic() - began:.0f} s, {len(last)} rows, {failed} failed",
            file=sys.stderr,
            flush=True,
        )
    return rows


@contextmanager
def _ended_by(seconds: float) -> Iterator[None]:
    """A test that waits for a GPU which never answers does not keep the results from us."""

    def late(*_: object) -> NoReturn:
        raise TimeoutError("it took longer than there was time: give --minutes")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1.0))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

"""`make test-gpu`: runs the tests on the GPU that is here, and prints what each figure came to.

Without a GPU it says so and succeeds. FAKEGPU_STATE=h200 runs it on the fake GPU (so is the script
tested); figures of time are noted there, not judged. On a real GPU it writes a results file and a
profile for the fake, both with date and hardware, into build/gpu.
"""

import argparse
import datetime as dt
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu import bench, compute_tests, framework_tests, life_tests, memory_tests, profile, report
from gpu.machine import find
from native import build

TESTS: dict[int, Callable[[bench.Bench], list[report.Row]]] = {
    1: memory_tests.every_path,
    2: memory_tests.boundary,
    3: memory_tests.race,
    4: compute_tests.launch_cost,
    5: compute_tests.small_kernels,
    6: compute_tests.shares_alone,
    7: compute_tests.two_tenants,
    8: compute_tests.borrowing,
    9: compute_tests.graphs,
    10: framework_tests.training,
    11: framework_tests.recovery,
    12: life_tests.live_changes,
    13: life_tests.storms,
    14: memory_tests.views,
    15: life_tests.escapes,
}


def main() -> int:
    """Runs the tests; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="make test-gpu", description=__doc__)
    parser.add_argument("--only", help="test numbers, comma-separated (default: all)")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="times and counts, 0.05: a quick look"
    )
    parser.add_argument(
        "--no-server", action="store_true", help="containers without `alnair agent`"
    )
    parser.add_argument("--json", action="store_true", help="rows as JSON instead of a table")
    parser.add_argument("--out", type=Path, default=build.ROOT / "build" / "gpu")
    given = parser.parse_args()
    machine, why = find()
    if machine is None:
        print(f"skipped: {why}. FAKEGPU_STATE=h200 runs the script on the fake GPU.")
        return 0
    wanted = [int(n) for n in given.only.split(",")] if given.only else list(TESTS)
    build.libraries()
    today = dt.datetime.now(dt.UTC).date().isoformat()
    with bench.measured(machine, given.scale, served=not given.no_server) as setup:
        rows = run(setup, wanted)
        by = "a vGPU server" if setup.tenants.agent else "no vGPU server"
        if given.json:
            print(msgspec.json.encode(rows).decode())
        else:
            print(f"{machine.name}, {by}, {today}\n{report.table(rows)}")
        if not machine.is_fake:
            profile.written(given.out, today, setup, rows)
    return int(any(row.verdict == report.FAILED for row in rows))


def run(setup: bench.Bench, wanted: list[int]) -> list[report.Row]:
    """The rows of these tests; a test that breaks is a failed row."""
    rows = []
    for number in wanted:
        began = time.monotonic()
        try:
            rows += TESTS[number](setup)
        except Exception as error:  # noqa: BLE001 - the other tests still say what they can
            traceback.print_exc()
            rows.append(report.judged(number, "the test itself", "runs", f"{error}"[:80], False))
        print(f"test {number}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())

"""Runs the tests on the GPU that is here, and prints what each figure came to.

`make test-gpu` in a checkout, `./run` in a bundle (`make gpu-bundle`). Without a GPU it says so and
succeeds. FAKEGPU_STATE=h200 runs it on the fake GPU of a checkout (so is the script tested);
figures of time are noted there, not judged. The last line is JSON, and a results file with date and
hardware is written, and a profile of the fake from a real GPU.
"""

import argparse
import datetime as dt
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu import machine, place


def main() -> int:
    """Runs the tests; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="run", description=__doc__)
    parser.add_argument("--only", help="test numbers, comma-separated (default: all)")
    parser.add_argument("--minutes", type=float, default=9.5, help="for everything (default: 9.5)")
    parser.add_argument("--scale", type=float, help="times and counts, 0.05: a quick look")
    parser.add_argument(
        "--no-server", action="store_true", help="containers without `alnair agent`"
    )
    parser.add_argument("--look", action="store_true", help="only say whether there is a GPU")
    parser.add_argument("--json", action="store_true", help="the JSON line only, with all rows")
    parser.add_argument("--out", type=Path, help="where results are written")
    given = parser.parse_args()
    if given.look:
        return _looked()
    found, why = machine.find()
    if found is None:
        return _untested(why, as_json=given.json)
    return _tested(found, given)


def _looked() -> int:
    """Says so where there is no driver or no GPU; by Python alone."""
    driver, why = machine.opened()
    print("there is a GPU" if driver else f"skipped: {why}")
    return 0


def _untested(why: str, *, as_json: bool) -> int:
    """Says that there is nothing to test, and what to do; by Python alone."""
    if as_json:
        print(json.dumps({"skipped": why}))
        return 0
    other = "FAKEGPU_STATE=h200 runs the script on the fake GPU of a checkout"
    if place.is_bundle():
        other = "Nothing was tested: start ./run on a machine with an NVIDIA GPU and its driver"
    print(f"skipped: {why}. {other}.")
    return 0


def _tested(found: machine.Machine, given: argparse.Namespace) -> int:
    """All that needs our packages: with a GPU they must be there, without they need not."""
    import msgspec

    from gpu import bench, profile, report, rounds
    from native import build

    try:
        wanted = rounds.chosen(given.only)
    except ValueError as error:
        sys.exit(f"run: --only: {error}")
    if not place.is_bundle():
        build.vgpu()
    began, today = time.monotonic(), dt.datetime.now(dt.UTC).date().isoformat()
    scale = given.scale or rounds.scale(wanted, given.minutes)
    with bench.measured(found, scale, served=not given.no_server) as setup:
        rows = rounds.run(setup, wanted, began + 60 * given.minutes)
        document = profile.document(today, setup, rows, time.monotonic() - began)
        if not given.json:
            by = "a vGPU server" if setup.tenants.agent else "no vGPU server"
            print(f"{found.name}, {by}, {today}\n{report.table(rows)}")
        out = given.out or build.ROOT / ("results" if place.is_bundle() else "build/gpu")
        files = profile.written(out, today, setup, document)
    if not given.json:
        print("to be sent to us: " + " ".join(map(str, files)))
        del document["rows"]
    document["files"] = [str(file) for file in files]
    print(msgspec.json.encode(document).decode())
    return int(any(row.verdict == report.FAILED for row in rows))


if __name__ == "__main__":
    sys.exit(main())

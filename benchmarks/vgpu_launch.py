"""What the interposer adds to a kernel launch: side by side, interleaved, on the fake GPU.

Method: three processes run the same program on a fake GPU in wall time: without interposer, with
it but without a compute limit, and with a limit that does not bind. They take turns: in each round
each of them launches batches of 256 empty kernels and gives the median time of a launch. The
figures are medians over the rounds; what a library adds is the median of its differences to the
plain process in the same round.

`--threads N,... --streams M`: each process launches from N threads at once, each into M streams of
its own by turns; a row for each N. The bounds are for one thread, whose launches meet nobody.

`--preload PATH` adds another library to the same rounds, with its limit by `--env NAME=VALUE`
(benchmarks/lib/other_library.py); `ratio` is what it adds over what ours adds with a limit.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lib import machine, other_library

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from native import build
from native.container import Container
from native.fake import Fake

PLAIN, FREE, LIMITED, OTHER = "plain", "no_limit", "limit_not_binding", "other"
#: Percent; empty kernels need none of the GPU.
NOT_BINDING = 90
#: Threads, and streams of each, as the client has room for.
MOST = 64
#: Nanoseconds that may be added to a launch.
BOUNDS = {FREE: 20.0, LIMITED: 60.0}


class Process:
    """One of the processes that take turns."""

    def __init__(self, environment: Mapping[str, str], threads: int, streams: int) -> None:
        program = build.client("launch_cost", "-l:libcuda.so.1")
        self._process = build.start(program, threads, streams, environment=environment)

    def measure(self, batches: int) -> float:
        """Median nanoseconds per launch."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{batches}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the client ended: {self._process.communicate()[1]}")
        return float(line)

    def close(self) -> None:
        """Let it end."""
        self._process.communicate(timeout=60)
        if self._process.returncode:
            raise subprocess.CalledProcessError(self._process.returncode, "launch_cost")


def _some(text: str) -> int:
    number = int(text)
    if not 1 <= number <= MOST:
        raise argparse.ArgumentTypeError(f"{number} is not between 1 and {MOST}")
    return number


def _numbers(text: str) -> list[int]:
    return [_some(number) for number in text.split(",")]


def measured(threads: int, options: argparse.Namespace) -> dict[str, Any]:
    """What launches cost from so many threads at once, of each process."""
    with ExitStack() as stack:
        fake = stack.enter_context(Fake(clock="wall"))
        environments = {PLAIN: fake.environment(PLAIN)}
        containers: dict[str, Container] = {}
        for name, percent in ((FREE, 0), (LIMITED, NOT_BINDING)):
            containers[name] = stack.enter_context(Container(fake.uuid(), compute_percent=percent))
            environments[name] = fake.environment(name) | containers[name].environment()
        if options.preload:
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))
            its = other_library.filled(options.env, percent=NOT_BINDING, folder=folder)
            environments[OTHER] = fake.environment(OTHER, LD_PRELOAD=options.preload, **its)
        processes = {
            name: Process(its, threads, options.streams) for name, its in environments.items()
        }
        for process in processes.values():  # warm
            process.measure(options.batches)
        found: dict[str, list[float]] = {name: [] for name in processes}
        for at in range(options.rounds):
            names = list(processes)
            for name in names[at % len(names) :] + names[: at % len(names)]:
                found[name].append(processes[name].measure(options.batches))
        throttled = {name: c.total("throttled_ns") for name, c in containers.items()}
        charged = {name: c.total("charged_ns") for name, c in containers.items()}
        for process in processes.values():
            process.close()
    added = {
        name: statistics.median(b - a for a, b in zip(found[PLAIN], values, strict=True))
        for name, values in found.items()
        if name != PLAIN
    }
    return {
        "threads": threads,
        "ns_per_launch": {name: round(statistics.median(v), 1) for name, v in found.items()},
        "added_ns": {name: round(value, 1) for name, value in added.items()},
        "throttled_ns": throttled,
        "charged_ns": charged,
        "ratio": other_library.ratio(added[OTHER], added[LIMITED]) if options.preload else None,
        "met": (threads > 1 or all(added[name] <= its for name, its in BOUNDS.items()))
        and not any(throttled.values()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preload", **other_library.PRELOAD)
    parser.add_argument("--env", **other_library.ENV)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--batches", type=int, default=40, help="of 256 launches, per round")
    parser.add_argument(
        "--threads", type=_numbers, default=[1], help="that launch at once, such as 1,2,4,8"
    )
    parser.add_argument(
        "--streams", type=_some, nargs="?", const=4, default=1, help="of each thread, by turns"
    )
    parser.add_argument("--json", action="store_true", help="nothing but the line of JSON")
    options = parser.parse_args()
    build.libraries()
    rows = [measured(threads, options) for threads in options.threads]
    if not options.json:
        names = list(rows[0]["ns_per_launch"])
        print(f"{'threads':>8}" + "".join(f"{name:>26}" for name in names), file=sys.stderr)
        for row in rows:
            told = "".join(
                f"{row['ns_per_launch'][name]:13.1f} ({row['added_ns'].get(name, 0.0):+8.1f})"
                + " " * 2
                for name in names
            )
            print(f"{row['threads']:8}{told}", file=sys.stderr)
    result = {
        "benchmark": "vgpu_launch",
        **rows[0],
        "met": all(row["met"] for row in rows),
        "rows": rows,
        "bounds_ns": BOUNDS,
        "rounds": options.rounds,
        "streams": options.streams,
        "library": options.preload or "",
        "method": f"medians of {options.rounds} rounds in turns, wall clock; ns a launch takes "
        "its thread",
        "machine": machine.describe(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

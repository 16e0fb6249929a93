"""What a process of a limited container pays to start with CUDA: 64 at once, on the fake GPU.

Method: the container is registered; 64 processes that have the driver initialised already (past
the interposer) wait on one futex, are woken together and call cuInit. Measured in each: the time of
our cuInit less the driver's own (called again at once after it, by then a formality), on the wall
and of the processor. In that time the process resolves the driver's functions, maps and checks both
pages, claims a slot and finds its GPU's row. On a machine with few cores the wall time holds the
wait for one: 64 processes that each compute for 50 us keep 2 cores busy for 1.6 ms.

The bound of the issue is p99 <= 2 ms on the wall, over all processes of all rounds.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from lib.machine import describe
from native import build
from native.container import Container
from native.fake import Fake

BOUND_US = 2000.0


def measure(processes: int, rounds: int) -> tuple[list[float], list[float]]:
    """Microseconds of our cuInit, on the wall and of the processor, sorted.

    Raises:
        RuntimeError: a process got no CUDA.
    """
    walls, processor = [], []
    with tempfile.TemporaryDirectory() as folder:
        helper = Path(folder) / "past.so"
        flags = ["-shared", "-fPIC", "-O1", "-o", str(helper)]
        subprocess.run(["cc", *flags, str(build.CLIENTS / "past.c"), "-ldl"], check=True)
        program = build.client("start")
        for _ in range(rounds):
            with Fake() as fake, Container(fake.uuid(), memory_limit=8 << 30) as container:
                environment = {**fake.environment(), **container.environment()}
                done = build.run(program, processes, helper, environment=environment)
            if done.returncode:
                raise RuntimeError(f"a process failed: {done.stdout[:200]} {done.stderr[:500]}")
            for line in done.stdout.splitlines():
                _, wall, its_own = line.split()
                walls.append(float(wall))
                processor.append(float(its_own))
    return sorted(walls), sorted(processor)


def quantile(values: list[float], share: float) -> float:
    """The value below which this share of the sorted values lies."""
    return values[min(len(values) - 1, int(share * len(values)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, default=64, help="that start at once")
    parser.add_argument("--rounds", type=int, default=20, help="of so many processes")
    given = parser.parse_args()
    build.libraries()
    measure(given.processes, 1)  # the libraries come into memory
    walls, processor = measure(given.processes, given.rounds)
    result = {
        "processes": given.processes,
        "rounds": given.rounds,
        "wall_p50_us": quantile(walls, 0.5),
        "wall_p99_us": quantile(walls, 0.99),
        "wall_max_us": walls[-1],
        "processor_p50_us": quantile(processor, 0.5),
        "processor_p99_us": quantile(processor, 0.99),
        "bound_us": BOUND_US,
        "machine": describe(),
    }
    print(f"{'':<12} {'p50 us':>8} {'p99 us':>8}", file=sys.stderr)
    for name in ("wall", "processor"):
        p50, p99 = result[f"{name}_p50_us"], result[f"{name}_p99_us"]
        print(f"{name:<12} {p50:>8} {p99:>8}", file=sys.stderr)
    print(json.dumps(result))


if __name__ == "__main__":
    main()

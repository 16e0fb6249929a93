"""What a memory limit costs, and what it lets through: by live allocations, by path, and by race.

Method: clients on a fake GPU in wall time (tests/native/clients/memory_cost.c). Cost: the median
of an allocation and free of 1 MiB while so many others live, plain and with the limit, in turns;
the figure is the median over the rounds. Overrun by path: a client takes pieces of 16 MiB one way
until it is refused, or has twice its limit; the fake's own account says how far above its limit.
Race: four processes of one container allocate and free at random by all paths; the same account.
Beyond: what memory of the host costs in place of the GPU's, where a slice may go beyond its limit
(`vgpu-memory-policy: swap`; ours alone): an allocation and free of 1 MiB, and the speed of a copy
of 16 MiB within that memory, in the GPU's time by the bandwidths that the fake was given.

`--preload PATH` measures another library in the same run, which gets its limit by
`--env NAME=VALUE` (benchmarks/lib/other_library.py).
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lib import machine, other_library
from lib.other_library import OTHER, OURS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from native import build
from native.container import Container
from native.fake import Fake

MIB = 1 << 20
PLAIN = "plain"
#: The context of this model is cheap, so that most of a limit is the program's own.
MODEL, CONTEXT = "k80", 64 * MIB
PATHS = ("alloc", "pitch", "managed", "async", "create", "array", "mipmap")
LIMIT, RACERS = 1024 * MIB, 4
#: A model that lets GPU and host use managed memory at once, and what a context of it takes.
SHARING, ITS_CONTEXT, ROOM = "h200", 522 * MIB, 64 * MIB
#: What `memory_cost beyond` prints.
BEYOND = ("ns_within", "ns_beyond", "gb_s_within", "gb_s_beyond")


@contextmanager
def tenant(
    fake: Fake, which: str, options: argparse.Namespace, limit: int
) -> Iterator[dict[str, str]]:
    """The environment of a tenant with this limit: of ours, of another library, or with none."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        if which == OURS:
            with Container(fake.uuid(), memory_limit=limit, context_bytes=CONTEXT) as container:
                yield fake.environment(which) | container.environment()
        elif which == OTHER:
            its = other_library.filled(options.env, memory=limit, folder=folder)
            yield fake.environment(which, LD_PRELOAD=options.preload, **its)
        else:
            yield fake.environment(which)


def costs(which: Sequence[str], options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Nanoseconds of an allocation and free of 1 MiB, by library and live allocations."""
    program, found = build.client("memory_cost", "-l:libcuda.so.1"), {}
    for live in options.live:
        taken: dict[str, list[float]] = {name: [] for name in which}
        for at in range(options.rounds):
            for name in (*which[at % len(which) :], *which[: at % len(which)]):
                with Fake(MODEL, clock="wall") as fake, tenant(fake, name, options, 8 << 30) as its:
                    said = build.checked(program, "cost", live, 1000, environment=its)
                    taken[name].append(float(said))
        for name, values in taken.items():
            found.setdefault(name, {})[str(live)] = round(statistics.median(values), 1)
    return found


def overruns(name: str, options: argparse.Namespace) -> dict[str, float]:
    """MiB above the limit, by path."""
    program, found = build.client("memory_cost", "-l:libcuda.so.1"), {}
    for path in PATHS:
        with Fake(MODEL) as fake, tenant(fake, name, options, LIMIT) as its:
            fake.watch(LIMIT, name)
            build.checked(program, "path", path, 2 * LIMIT, environment=its)
            found[path] = round(fake.over(name)[1] / MIB, 1)
    return found


def beyond(options: argparse.Namespace) -> dict[str, float]:
    """Medians over the rounds of what the client says of memory within a slice and beyond it."""
    program, found = build.client("memory_cost", "-l:libcuda.so.1"), []
    limits = {"memory_limit": ITS_CONTEXT + ROOM, "context_bytes": ITS_CONTEXT}
    for _ in range(options.rounds):
        with (
            Fake(SHARING, clock="wall") as fake,
            Container(fake.uuid(), **limits, swap_limit=2 * ROOM) as its,
        ):
            around = fake.environment(FAKEGPU_DATA="0") | its.environment()
            found.append(build.checked(program, "beyond", ROOM, 500, environment=around).split())
    medians = [statistics.median(map(float, column)) for column in zip(*found, strict=True)]
    return dict(zip(BEYOND, (round(value, 2) for value in medians), strict=True))


def race(name: str, options: argparse.Namespace) -> float:
    """MiB that four processes were above their limit at the worst instant."""
    program = build.client("memory_race", "-l:libcuda.so.1")
    with Fake(MODEL) as fake, tenant(fake, name, options, LIMIT) as its:
        fake.watch(LIMIT, name)
        racers = [
            build.start(program, options.seconds, seed, environment=its) for seed in range(RACERS)
        ]
        for racer in racers:
            out, err = racer.communicate(timeout=60 + options.seconds)
            if racer.returncode:
                raise SystemExit(f"a process of the race ended with {racer.returncode}: {out}{err}")
        return round(fake.over(name)[1] / MIB, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preload", **other_library.PRELOAD)
    parser.add_argument("--env", **other_library.ENV)
    parser.add_argument("--live", type=int, nargs="+", default=[0, 1000, 10000])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=5.0, help="of the race")
    parser.add_argument("--json", action="store_true", help="nothing but the line of JSON")
    options = parser.parse_args()
    build.libraries()
    limited = [OURS, *([OTHER] if options.preload else [])]
    cost = costs([PLAIN, *limited], options)
    over = {name: overruns(name, options) for name in limited}
    raced = {name: race(name, options) for name in limited}
    swapped = beyond(options)
    if not options.json:
        say = sys.stderr
        print(f"{'':32}{PLAIN:>12}" + "".join(f"{name:>12}" for name in limited), file=say)
        for live in map(str, options.live):
            row = "".join(f"{cost[name][live]:12.0f}" for name in (PLAIN, *limited))
            print(f"{'ns at ' + live + ' live allocations':32}{row}", file=say)
        for path in PATHS:
            row = "".join(f"{over[name][path]:12.1f}" for name in limited)
            print(f"{'MiB over by ' + path:32}{'':12}{row}", file=say)
        print(
            f"{'MiB over in a race':32}{'':12}" + "".join(f"{raced[n]:12.1f}" for n in limited),
            file=say,
        )
        pairs = (("ns of an allocation", "ns"), ("GB/s of a copy", "gb_s"))
        for what, unit in pairs:
            within, further = swapped[f"{unit}_within"], swapped[f"{unit}_beyond"]
            print(f"{what + ', within | beyond':32}{within:12.1f}{further:12.1f}", file=say)
    added = {
        n: {live: round(cost[n][live] - cost[PLAIN][live], 1) for live in cost[n]} for n in limited
    }
    result = {
        "benchmark": "vgpu_memory",
        "ns": cost,
        "added_ns": added,
        "over_mib": over,
        "race_over_mib": raced,
        "beyond": swapped,
        "ratio_ns": {
            live: other_library.ratio(cost[OTHER][live], cost[OURS][live]) for live in cost[OURS]
        }
        if options.preload
        else {},
        "met": not raced[OURS] and not any(over[OURS].values()),
        "method": f"medians of {options.rounds} rounds of 1000 allocations and frees of 1 MiB, "
        "in turns; "
        f"the fake GPU's account of bytes above a limit of {LIMIT // MIB} MiB; wall clock",
        "library": options.preload or "",
        "machine": machine.describe(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()

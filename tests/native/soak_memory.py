"""The figures of the memory limit, on the fake GPU: one JSON line, and on stderr a sentence.

    make test-native ARGS="--only soak"
    python tests/native/soak_memory.py [--calls 1000000] [--processes 32] [--kills 1000]

`calls` random calls in all, from processes that race at a limit of half of what they want, of which
`kills` are killed at random points and replaced; then a million in one process whose ledger is
compared with the truth after every call. Exit status 1 where a byte was over, left or different.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from native import build  # noqa: E402  (found by the line above)
from native.calls import MIB  # noqa: E402
from native.test_memory_races import most_false, storm, tenant  # noqa: E402

#: Seconds for each part, on a machine that does other things, too.
PATIENCE = 3600.0


def main() -> int:
    """Runs both parts and prints what they showed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=32)
    parser.add_argument("--kills", type=int, default=1000)
    options = parser.parse_args()
    build.libraries()
    limit, begun = 3600 * MIB, time.monotonic()
    with tenant(limit) as (fake, container, environment):
        each = options.calls // options.processes
        race = storm(environment, options.processes, each, options.kills, PATIENCE)
        # A process after all: it frees the slots of the dead.
        program = build.client("memory_random")
        build.checked(program, 2000, 1, 2 * limit, environment=environment)
        over, over_bytes = fake.over()
        left = fake.used() + container.total("held") + container.total("pending")
        peak, made = fake.peak(), fake.calls()
    raced = time.monotonic() - begun
    with tenant(512 * MIB) as (fake, _, environment):
        alone = json.loads(
            build.checked(
                program,
                options.calls,
                3,
                8 << 30,
                "exact",
                environment=environment,
                timeout=PATIENCE,
            )
        )
        over += fake.over()[0]
    figures = {
        "driver_calls": made,
        "killed": race["killed"],
        "requests": race["requests"],
        "refused": race["refused"],
        "false_refusals": race["false"],
        "false_percent": round(100 * race["false"] / race["requests"], 4),
        "over_limit_instants": over,
        "over_limit_bytes": over_bytes,
        "peak_below_limit_bytes": limit - peak,
        "left_bytes": left + race["left"] + alone["left"],
        "slowest_request_ms": race["slowest_ms"],
        "exact_calls": options.calls,
        "exact_different": alone["different"],
        "race_seconds": round(raced, 1),
    }
    print(json.dumps(figures), flush=True)
    print(
        f"{made + options.calls:,} driver calls, {race['killed']:,} processes killed: "
        f"{over_bytes} B over, {figures['left_bytes']} B left, "
        f"{figures['false_percent']} % refused without need",
        file=sys.stderr,
    )
    false, most = race["false"], most_false() * race["requests"]
    wrong = over or figures["left_bytes"] or alone["different"] or false >= most
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Random memory calls from many processes and threads, some of them killed: never a byte over."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from native import build
from native.calls import MIB, SUCCESS, Calls, Out
from native.container import Container
from native.fake import Fake

SOAK = int(os.environ.get("ALNAIR_SOAK", "1"))
#: A small GPU: contexts are cheap (native/fakegpu/profiles/k80), so that many processes fit.
MODEL, CONTEXT = "k80", 64 * MIB


@contextmanager
def tenant(limit: int) -> Iterator[tuple[Fake, Container, dict[str, str]]]:
    """A container with this limit, watched by the fake GPU."""
    with (
        Fake(MODEL) as fake,
        Container(fake.uuid(), memory_limit=limit, context_bytes=CONTEXT) as container,
    ):
        fake.watch(limit)
        yield fake, container, {**fake.environment(), **container.environment()}


def storm(
    environment: dict[str, str],
    processes: int,
    operations: int,
    kills: int = 0,
    patience: float = 120.0 * SOAK,
) -> dict[str, Any]:
    """Runs so many clients, replacing those that are killed; what they saw, summed.

    They begin together: on a busy machine the first would be done before the last has started.
    """
    program, draw = build.client("memory_random"), random.Random(7)

    def start(seed: int, *more: str) -> Any:
        words = (operations, seed, 100 * MIB, *more)
        return build.start(program, *words, environment=environment)

    running = [start(seed, "waits") for seed in range(1, processes + 1)]
    for process in running:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    killed = 0
    for kill in range(kills):
        time.sleep(draw.random() * 0.02)
        victim = draw.randrange(processes)
        running[victim].kill()
        running[victim].communicate()
        killed += running[victim].returncode == -signal.SIGKILL
        running[victim] = start(1000 + kill)
    seen: dict[str, Any] = {"slowest_ms": 0.0, "killed": killed}
    for process in running:
        out, errors = process.communicate(timeout=patience)
        assert process.returncode == 0, f"exit {process.returncode}: {errors}"
        for key, value in json.loads(out).items():
            grown = seen.get(key, 0) + value
            seen[key] = max(seen[key], value) if key == "slowest_ms" else grown
    return seen


def most_false() -> float:
    """The part of requests that may be refused without need.

    On a busy machine a peer is off the CPU for longer than a refusal waits for its bytes.
    """
    busy = os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
    return 0.01 if busy else 0.001


def test_random_calls_of_every_kind_keep_the_ledger_exact() -> None:
    program = build.client("memory_random")
    with tenant(512 * MIB) as (fake, _, environment):
        out = build.checked(
            program, 50_000 * SOAK, 3, 8 << 30, "exact", environment=environment, timeout=60 * SOAK
        )
        seen = json.loads(out)
        print(seen)
        assert (seen["different"], seen["errors"], seen["left"], seen["false"]) == (0, 0, 0, 0)
        assert seen["refused"] > 500
        assert fake.over() == (0, 0)
        assert fake.peak() == 512 * MIB
        assert fake.used() == 0


def test_eight_threads_of_one_process_stay_within_the_limit() -> None:
    program = build.client("memory_random")
    with tenant(1024 * MIB) as (fake, _, environment):
        arguments = (40_000 * SOAK, 5, 8 << 30, "threads=8")
        out = build.checked(program, *arguments, environment=environment, timeout=60 * SOAK)
        seen = json.loads(out)
        print(seen)
        assert (seen["errors"], seen["left"]) == (0, 0)
        assert seen["refused"] > 500
        assert fake.over() == (0, 0)
        assert fake.used() == 0


@pytest.mark.parametrize(
    ("calls", "kills"), [(800, 0), (1500, 60)], ids=["all live", "60 are killed"]
)
def test_32_racing_processes_are_never_over_and_leave_nothing(calls: int, kills: int) -> None:
    limit = 32 * CONTEXT + 800 * MIB  # a quarter of what they want
    with tenant(limit) as (fake, container, environment):
        seen = storm(environment, 32, calls * SOAK, kills * SOAK)
        print(seen)
        assert fake.over() == (0, 0)
        assert kills or fake.peak() >= limit - 4 * MIB, "the race never reached the limit"
        assert kills or seen["refused"] > 20
        assert seen["false"] < most_false() * seen["requests"]
        assert (seen["errors"], seen["left"]) == (0, 0)
        # All of the limit is free again, at once: a request waits for others' bytes 0.25 s at most.
        with Calls(environment) as call:
            assert call("cuMemAlloc_v2", Out("all"), limit - CONTEXT) == SUCCESS
            assert container.total("held") == fake.used() == limit

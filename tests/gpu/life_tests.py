"""Tests 12 and 13: limits that change, and storms of processes that start and die."""

import time
from statistics import median, quantiles

from gpu.bench import Bench
from gpu.machine import MIB
from gpu.programs import Program
from gpu.report import Row, judged, timed
from gpu.tenants import Home

WINDOW = 0.1


def live_changes(bench: Bench) -> list[Row]:
    """Test 12: both limits halved and doubled while a program runs into them."""
    seconds = bench.seconds(8)
    high, low = 8192 * MIB, 4096 * MIB
    changes = 8
    slowest = 0.0
    with bench.tenants.one(memory=high) as it:
        program = Program("memory", "follow", seconds, at=it.home)
        for i in range(changes):
            time.sleep(seconds / (changes + 1))
            limit = (low, high)[i % 2]
            it.change(memory=limit)
            time.sleep(0.01)
            # Every allocation after these 10 ms is judged by the new limit: what is held over a
            # lowered limit may stay, and may not grow.
            before = it.held()
            time.sleep(0.02)
            if limit == low and before > low:
                slowest = max(slowest, it.held() - before)
        errors = program.line()["errors"]
        code, _ = program.end()
    rows = [
        judged(12, "grown after 10 ms of a lowered limit", "0 B", f"{slowest:.0f} B", slowest <= 0),
        judged(
            12, "errors in the program", "0, exit 0", f"{errors}, exit {code}", not errors + code
        ),
    ]
    return [*rows, _new_share(bench)]


def _new_share(bench: Bench) -> Row:
    """How long until the windows show the new share: 60 %, then 30 %."""
    seconds = max(4.0, bench.seconds(8))
    with bench.tenants.one(percent=60) as it:
        program = bench.load("big", seconds, it.home)
        began = time.monotonic()
        time.sleep(seconds / 2)
        it.change(percent=30)
        changed = time.monotonic() - began
        windows = program.line()["windows"]
        program.end()
    # The program's own start lies between; windows count from its first launch, so the fall is
    # looked for in the data: the last window well above the new share.
    level = median(windows[len(windows) * 3 // 4 :])
    high = median(windows[2 : len(windows) // 3])
    above = [i for i, w in enumerate(windows) if w > (level + high) / 2]
    late = max(0.0, (above[-1] + 1) * WINDOW - changed) if above else 0.0
    fake = bench.machine.is_fake
    return timed(
        12,
        "new share reached after",
        "<= 500 ms",
        f"<= {late * 1000:.0f} ms",
        late <= 0.5,
        is_fake=fake,
    )


def storms(bench: Bench) -> list[Row]:
    """Test 13: many processes start at once, and many are killed."""
    processes = bench.count(64)
    fake = bench.machine.is_fake
    free = _starts(processes, bench.tenants.free())
    with bench.tenants.one(memory=bench.machine.total) as it:
        hooked = _starts(processes, it.home)
        added = (_p99(hooked) - _p99(free)) / 1e6
        holders = [Program("memory", "hold", 64, at=it.home) for _ in range(processes)]
        results = {h.line()["result"] for h in holders}
        full = it.held()
        inside = sorted(it.starts())
        for h in holders[::2]:
            h.kill()
        killed = len(holders[::2])
        # A new process sees the dead ones' bytes as free: it is they, not a server, that reap.
        witness = Program("memory", "hold", 64, at=it.home)
        began = time.monotonic()
        witness.line()
        wanted = full // processes * (processes - killed + 1)
        while it.held() != wanted and time.monotonic() - began < 5:
            time.sleep(0.01)
        back = time.monotonic() - began
        left = it.held() - wanted
        for h in [*holders[1::2], witness]:
            h.go()
            h.end()
    return [
        timed(
            13,
            f"{processes} starts: p99 of cuInit and context, added",
            "<= 2 ms",
            f"{added:.2f} ms",
            added <= 2,
            is_fake=fake,
        ),
        judged(
            13,
            "starts that the hook measured",
            f"{processes}",
            f"{len(inside)}",
            len(inside) == processes,
        ),
        timed(
            13,
            f"{processes} starts: p99 inside the hook",
            "<= 2 ms",
            f"{_p99(inside) / 1e6:.2f} ms, median {median(inside) / 1e6:.2f} ms",
            _p99(inside) <= 2e6,
            is_fake=fake,
        ),
        judged(13, f"{processes} hold 64 MiB each", "[0]", f"{sorted(results)}", results == {0}),
        judged(
            13,
            f"{killed} killed: bytes not back after 1 s",
            "0 B",
            f"{left} B ({back:.2f} s)",
            not left and back <= 1,
        ),
    ]


def _starts(processes: int, at: Home) -> list[int]:
    running = [Program("memory", "start", at=at) for _ in range(processes)]
    found = [program.line()["all_ns"] for program in running]
    for program in running:
        program.end()
    return found


def _p99(values: list[int]) -> float:
    return quantiles(values, n=100, method="inclusive")[98]

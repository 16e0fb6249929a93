"""Tests 4 to 9: what limits cost, and how exact shares of GPU time are.

Shares are measured as work done: nominal GPU time of the kernels completed, over what the same load
completes alone and without limits. NVML's utilisation would hide errors, as it counts the time in
which any kernel is resident.
"""

from statistics import fmean, median

from gpu.bench import Bench
from gpu.programs import ran
from gpu.report import Row, skipped, timed
from gpu.tenants import Home

#: Seconds of a window of load.c.
WINDOW = 0.1
LOADS = ("tiny", "big", "long")
ROUNDS = 5


def launch_cost(bench: Bench) -> list[Row]:
    """Test 4: nanoseconds that a launch of nothing takes longer."""
    seconds = bench.seconds(4)
    plain, inert, limited = [], [], []
    for _ in range(bench.count(ROUNDS)):
        plain.append(ran("load", "empty", seconds, at=bench.tenants.free()))
        with bench.tenants.one() as it:
            inert.append(ran("load", "empty", seconds, at=it.home))
        with bench.tenants.one(percent=90) as it:
            limited.append(ran("load", "empty", seconds, at=it.home))

    def added(runs: list[dict[str, float]], key: str) -> float:
        return median(r[key] for r in runs) - median(r[key] for r in plain)

    first, second = added(inert, "ns_per_launch"), added(limited, "ns_per_launch")
    tail = added(limited, "p999_ns")
    of = f"of {median(r['ns_per_launch'] for r in plain):.0f} ns"
    return [
        _timed(
            bench, 4, "launch, no compute limit", "<= 20 ns", first, f"{first:+.1f} ns {of}", 20
        ),
        _timed(
            bench, 4, "launch, limit not binding", "<= 60 ns", second, f"{second:+.1f} ns {of}", 60
        ),
        _timed(bench, 4, "launch, p99.9", "<= 1,000 ns", tail, f"{tail:+.0f} ns", 1000),
    ]


def small_kernels(bench: Bench) -> list[Row]:
    """Test 5: throughput of kernels of 4 us, and the cost of a pair of allocation and free."""
    seconds, pairs = bench.seconds(10), bench.count(20000)
    rates: dict[bool, list[float]] = {True: [], False: []}
    costs: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(bench.count(ROUNDS)):
        with bench.tenants.one(memory=bench.machine.total) as it:
            for hooked, home in ((False, bench.tenants.free()), (True, it.home)):
                rates[hooked].append(_rate(bench, "tiny", seconds, home))
                costs[hooked].append(ran("memory", "pair", pairs, at=home)["ns_per_pair"])
    loss = 100 - 100 * median(rates[True]) / median(rates[False])
    added = median(costs[True]) - median(costs[False])
    return [
        _timed(bench, 5, "lost with kernels of 4 us", "<= 0.5 %", loss, f"{loss:.2f} %", 0.5),
        _timed(bench, 5, "allocation and free", "<= 300 ns", added, f"{added:+.0f} ns", 300),
    ]


def shares_alone(bench: Bench) -> list[Row]:
    """Test 6: one tenant at 25, 50 and 75 %."""
    return _shares(bench, 6, LOADS, worst_allowed=4.0, mean_allowed=2.0)


def graphs(bench: Bench) -> list[Row]:
    """Test 9: the same with everything in one graph."""
    return _shares(bench, 9, ("graph",), worst_allowed=3.0, mean_allowed=3.0)


def _shares(
    bench: Bench, test: int, loads: tuple[str, ...], *, worst_allowed: float, mean_allowed: float
) -> list[Row]:
    errors = {}
    seconds = bench.seconds(32)
    for load in loads:
        whole = _rate(bench, load, seconds, bench.tenants.free())
        for percent in (25, 50, 75):
            with bench.tenants.one(percent=percent) as it:
                errors[load, percent] = 100 * _rate(bench, load, seconds, it.home) / whole - percent
    mean = fmean(abs(e) for e in errors.values())
    (load, percent), worst = max(errors.items(), key=lambda item: abs(item[1]))
    name = f"shares of {', '.join(loads)}"
    where = f"{worst:+.2f} points ({load} at {percent} %)"
    return [
        _timed(
            bench,
            test,
            f"{name}: mean error",
            f"<= {mean_allowed:g} points",
            mean,
            f"{mean:.2f} points",
            mean_allowed,
        ),
        _timed(
            bench,
            test,
            f"{name}: worst",
            f"<= {worst_allowed:g} points",
            abs(worst),
            where,
            worst_allowed,
        ),
    ]


def two_tenants(bench: Bench) -> list[Row]:
    """Test 7: 30 to 70 and 50 to 50, with unlike loads."""
    seconds = bench.seconds(32)
    free = bench.tenants.free()
    alone = {load: _rate(bench, load, seconds, free) for load in ("tiny", "big")}
    unlimited = _together(bench, seconds, {"tiny": free, "big": free}, alone)
    rows = []
    for first, second in ((30, 70), (50, 50)):
        with bench.tenants.one(percent=first) as a, bench.tenants.one(percent=second) as b:
            got = _together(bench, seconds, {"tiny": a.home, "big": b.home}, alone)
        shares = (100 * got["tiny"], 100 * got["big"])
        error = max(abs(shares[0] - first), abs(shares[1] - second))
        per = [shares[0] / first, shares[1] / second]
        unfair = 1 - sum(per) ** 2 / (2 * sum(x * x for x in per))
        lost = 100 - 100 * sum(got.values()) / sum(unlimited.values())
        name, both = f"{first}/{second}", f"({shares[0]:.1f}/{shares[1]:.1f} %)"
        rows += [
            _timed(
                bench,
                7,
                f"{name}: worst error",
                "<= 2 points",
                error,
                f"{error:.2f} points {both}",
                2,
            ),
            _timed(bench, 7, f"{name}: Jain", ">= 0.99", unfair, f"{1 - unfair:.4f}", 0.01),
            _timed(
                bench,
                7,
                f"{name}: of time-slicing's work",
                ">= 95 %",
                lost,
                f"{100 - lost:.1f} %",
                5,
            ),
        ]
    return rows


def borrowing(bench: Bench) -> list[Row]:
    """Test 8: alone, soft gets all and hard its share; soft gives back when another wakes."""
    seconds = bench.seconds(16)
    whole = _rate(bench, "big", seconds, bench.tenants.free())
    with bench.tenants.one(percent=30) as it:
        hard = 100 * _rate(bench, "big", seconds, it.home) / whole
    rows = [_timed(bench, 8, "30 % hard, alone", "<= 32 %", hard, f"{hard:.1f} %", 32)]
    if bench.tenants.agent is None:
        return [*rows, skipped(8, "30 % soft", "only a vGPU server grants it more (needs root)")]
    with bench.tenants.one(percent=30, soft=True) as it:
        idle = 100 - 100 * _rate(bench, "big", seconds, it.home) / whole
        rows.append(_timed(bench, 8, "30 % soft, alone", ">= 97 %", idle, f"{100 - idle:.1f} %", 3))
        with bench.tenants.one(percent=70) as other:
            sleeper = bench.load("wake", seconds, other.home)
            ours = bench.load("big", seconds, it.home).line()["windows"]
            sleeper.line()
    # It woke in the middle; the last window before the end that is well above the share tells how
    # long the borrower went on.
    middle = len(ours) // 2
    above = [i for i, work in enumerate(ours) if work > WINDOW * (0.30 + 0.25) * whole]
    late = max(0, above[-1] + 1 - middle) * WINDOW * 1000 if above else 0
    what = "30 % soft, back after another woke"
    return [*rows, _timed(bench, 8, what, "<= 500 ms", late, f"<= {late:.0f} ms", 500)]


def _rate(bench: Bench, load: str, seconds: float, at: Home) -> float:
    program = bench.load(load, seconds, at)
    done = program.line()
    program.end()
    return float(done["work_s"] / done["over_s"])


def _together(
    bench: Bench, seconds: float, homes: dict[str, Home], alone: dict[str, float]
) -> dict[str, float]:
    """Loads at once: each one's rate as a fraction of its own alone."""
    running = {load: bench.load(load, seconds, at) for load, at in homes.items()}
    done = {load: program.line() for load, program in running.items()}
    for program in running.values():
        program.end()
    return {load: d["work_s"] / d["over_s"] / alone[load] for load, d in done.items()}


def _timed(
    bench: Bench, test: int, what: str, required: str, value: float, shown: str, most: float
) -> Row:
    return timed(test, what, required, shown, value <= most, is_fake=bench.machine.is_fake)

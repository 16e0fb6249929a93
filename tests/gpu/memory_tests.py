"""Tests 1, 2, 3 and 14: memory is exact, on every path and in races, and the views agree."""

import json

from gpu.bench import Bench
from gpu.machine import MIB
from gpu.programs import Program, ran, script
from gpu.report import Row, judged, skipped
from gpu.tenants import rounded

LIMIT = 10240 * MIB
#: What a real GPU may show beyond the limit at its peak: blocks of the driver's own.
SLACK = 32 * MIB
PATHS = 14


def every_path(bench: Bench) -> list[Row]:
    """Test 1: the ledger beside the requests and beside the GPU's own accounts, path by path."""
    with bench.tenants.one(memory=LIMIT) as it:
        program = Program("memory", "paths", at=it.home)
        program.line()
        pids = [program.pid]
        bench.machine.watch(it.tag, pids, LIMIT)
        base, true_base = it.held(), bench.machine.used(it.tag, pids)
        wrong, true_wrong, left = [(0, "")], [(0, "")], [(0, "")]
        program.go()
        while step := program.line_or_end():
            charged = it.held() - base
            true = bench.machine.used(it.tag, pids) - true_base
            if step["step"] == "taken":
                # The fake charges an image its size, and does not read PTX for globals.
                if not (bench.machine.is_fake and step["path"] == "module"):
                    wrong.append((abs(charged - rounded(step["bytes"])), step["path"]))
                true_wrong.append((abs(charged - true), step["path"]))
            else:
                left.append((abs(charged), step["path"]))
            program.go()
        code, said = program.end()
        peaks = bench.machine.peaks(it.tag)
    worst, true_worst, leaked = max(wrong), max(true_wrong), max(left)
    done = len(true_wrong) - 1
    outcome = f"{done}, exit {code} {said}".strip()
    return [
        judged(1, "paths gone through", f"{PATHS}, exit 0", outcome, not code and done == PATHS),
        judged(1, "ledger - requests", "0 B", f"{worst[0]} B {worst[1]}", not worst[0]),
        judged(1, "ledger - GPU", "0 B", f"{true_worst[0]} B {true_worst[1]}", not true_worst[0]),
        judged(1, "left after each path", "0 B", f"{leaked[0]} B {leaked[1]}", not leaked[0]),
        *_peaks(1, peaks, LIMIT),
    ]


def _peaks(test: int, peaks: tuple[int, int | None], limit: int) -> list[Row]:
    """What NVML showed at most, and the truth where one knows it; a reading of 0 B is none."""
    seen, exact = peaks
    over = max(0, seen - limit)
    shown = f"{over} B (of {seen} B)" if seen else "NVML showed 0 B"
    holds = 0 < seen <= limit + SLACK
    rows = [judged(test, "NVML's peak over the limit", "<= 32 MiB", shown, holds)]
    if exact is not None:
        over = max(0, exact - limit)
        what = "peak over the limit, any instant"
        rows.append(judged(test, what, "0 B", f"{over} B", 0 < exact <= limit))
    return rows


def boundary(bench: Bench) -> list[Row]:
    """Test 2: the largest allocation that succeeds is the same each time, and what is left."""
    tries = bench.count(100)
    with bench.tenants.one(memory=LIMIT) as it:
        idle = Program("memory", "hold", 0, at=it.home)
        idle.line()
        fixed = it.held()
        idle.go()
        idle.end()
        found = ran("memory", "boundary", tries, at=it.home)
    values = {size for size, _ in found}
    refused = sum(code == 2 for _, code in found)
    wanted = (LIMIT - fixed) // (2 * MIB) * 2 * MIB
    return [
        judged(2, "boundary", f"{wanted} B, always", f"{sorted(values)}", values == {wanted}),
        judged(2, "one block more: refused", f"{tries}", f"{refused}", refused == tries),
    ]


def race(bench: Bench) -> list[Row]:
    """Test 3: processes that take and give back at random pass no limit, and leak nothing."""
    processes = bench.count(32)
    # Demand: a process holds up to 64 x 64 MiB, half of it on average.
    limit = processes * (bench.context + 16 * 64 * MIB)
    with bench.tenants.one(memory=limit) as it:
        seconds = bench.seconds(60)
        racers = [Program("memory", "race", seconds, seed, at=it.home) for seed in range(processes)]
        for r in racers:
            r.line()
        bench.machine.watch(it.tag, [r.pid for r in racers], limit)
        base = it.held()
        for r in racers:
            r.go()
        done = [r.line() for r in racers]
        for r in racers:
            r.line()
        left = it.held() - base
        peaks = bench.machine.peaks(it.tag)
        for r in racers:
            r.go()
        codes = {r.end()[0] for r in racers}
    tried, refused, false, errors = (
        sum(d[key] for d in done) for key in ("tried", "refused", "false", "errors")
    )
    what = f"{processes} processes, {tried} requests, {refused} refused"
    ended = f"{errors} errors, exit {sorted(codes)}"
    return [
        judged(3, what, "0 errors, exit [0]", ended, codes == {0} and not errors),
        *_peaks(3, peaks, limit),
        judged(3, "left at the end", "0 B", f"{left} B", left == 0),
        judged(
            3, "false refusals", "< 0.1 %", f"{false / max(tried, 1):.3%}", false < tried / 1000
        ),
    ]


def views(bench: Bench) -> list[Row]:
    """Test 14: what a program reads as total is the limit, and what is used is the ledger."""
    with bench.tenants.one(memory=LIMIT) as it:
        program = Program("memory", "view", at=it.home)
        program.line()
        held = it.held()
        program.go()
        seen = program.line()
        nvml = script("nvml_view.py", at=it.home, packages=True)
        program.end()
    off = abs(seen["total"] - seen["free"] - held)
    total, device = seen["total"], seen["device"]
    rows = [
        judged(14, "cuMemGetInfo, total", f"{LIMIT} B", f"{total} B", total == LIMIT),
        judged(14, "cuDeviceTotalMem", f"{LIMIT} B", f"{device} B", device == LIMIT),
        judged(14, "cuMemGetInfo, used - ledger", "<= 2 MiB", f"{off} B", off <= 2 * MIB),
    ]
    if nvml.returncode:
        why = nvml.stderr.strip().splitlines()[-1:] or [""]
        return [*rows, skipped(14, "nvidia-ml-py, total", f"NVML does not answer: {why[0]}")]
    read = json.loads(nvml.stdout)
    total, gpus = read["total"], read["gpus"]
    return [
        *rows,
        judged(14, "nvidia-ml-py, total", f"{LIMIT} B", f"{total} B", total == LIMIT),
        judged(14, "nvidia-ml-py, GPUs", "1", str(gpus), gpus == 1),
    ]

"""How far from the truth ways to measure processes of a shared GPU are, once a second.

    python benchmarks/gpu_collectors.py [--seconds 12] [--json]

Three processes share a fake GPU by turns: one computes all the time, one serves requests, one
computes for some seconds and then holds its memory only. Each second each way says what every one
of them used; the truth is the fake's GPU time by process. Errors are in points of percent, the mean
over processes and seconds. A way of a collector is what it calls, not the collector itself: DCGM
has no fake. Needs Linux and a C compiler; no GPU.
"""

import argparse
import asyncio
import ctypes
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pynvml

from alnair.node.gpu_driver import GpuDriver
from alnair.node.gpu_looks import GpuLook, GpuLooks
from lib import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from native import build
from native.fake import Fake

LOADS: Mapping[str, tuple[object, ...]] = {
    "trains": ("gpu_load", "kernel:ns_2000000", 600),
    "serves": ("gpu_load", "infer:ns_5000000:2", 600, 0, 15),
    "ends": ("timed", "launch 0 ns_4000000 400", "sync", "read"),
}
#: Our own way, and what it may be off.
OURS, POINTS = "samples of this agent", 3.0
DEVICE = "the GPU's value for each of them (dcgm-exporter as installed)"
ZERO = "process utilisation since 0 (dcgm-exporter's virtual GPUs, Kepler)"
SECOND = "process utilisation since a second ago (the first Alnair)"
#: Percent above which an ended load counts as one that still runs.
IDLE = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=12)
    parser.add_argument("--json", action="store_true", help="only the line of JSON")
    options = parser.parse_args()
    ctypes.CDLL(str(build.libraries() / "libnvidia-ml.so.1"))  # dlopen knows it by its name then
    with Fake("h100") as fake:
        os.environ["FAKEGPU_STATE"] = str(fake.state)
        with started(fake) as pids:
            result = asyncio.run(measure(fake, pids, options.seconds))
    if not options.json:
        for way, said in result.items():
            print(
                f"{said['error']:6.1f} points off, sum at most {said['sum']:5.0f} %, shows the "
                f"ended load for {said['after_s']:2d} s: {way}",
                file=sys.stderr,
            )
    met = result[OURS]["error"] <= POINTS and result[OURS]["sum"] <= 100
    print(
        json.dumps(
            {
                "benchmark": "gpu_collectors",
                "ways": result,
                "met": met,
                "machine": machine.describe(),
            }
        )
    )
    return 0


@contextmanager
def started(fake: Fake) -> Iterator[dict[str, int]]:
    with ExitStack() as stack:
        pids = {}
        for tag, (name, *words) in LOADS.items():
            program = build.client(str(name), "-l:libcuda.so.1", "-l:libfakegpu.so", "-lm")
            process = stack.enter_context(
                build.start(program, *words, environment=fake.environment(tag))
            )
            stack.callback(process.kill)
            pids[tag] = process.pid
        time.sleep(1.5)
        yield pids


async def measure(fake: Fake, pids: Mapping[str, int], seconds: int) -> dict[str, dict[str, Any]]:
    driver, seen = GpuDriver(), list[GpuLook]()
    await driver.look()
    looks = GpuLooks(driver, [seen.append])
    await looks.look()
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    said: dict[str, list[dict[str, float]]] = {OURS: [], DEVICE: [], ZERO: [], SECOND: []}
    true: list[dict[str, float]] = []
    at, work = time.monotonic(), {tag: fake.work_ns(tag) for tag in pids}
    for _ in range(seconds):
        await asyncio.sleep(1.0 - (time.monotonic() - at) % 1.0)
        await looks.look()
        (sample,) = seen[-1].samples.values()
        ours = {one.pid: one.sm or 0.0 for one in sample.processes}
        util = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu
        zero, second = rows(handle, 0), rows(handle, time.time_ns() // 1000 - 1_000_000)
        now, done = time.monotonic(), {tag: fake.work_ns(tag) for tag in pids}
        true.append({tag: (done[tag] - work[tag]) / 1e7 / (now - at) for tag in pids})
        at, work = now, done
        for way, found in ((OURS, ours), (ZERO, zero), (SECOND, second)):
            said[way].append({tag: found.get(pid, 0.0) for tag, pid in pids.items()})
        said[DEVICE].append(dict.fromkeys(pids, float(util)))
    pynvml.nvmlShutdown()
    driver.close()
    return {way: judged(found, true) for way, found in said.items()}


def rows(handle: Any, since: int) -> dict[int, float]:
    try:
        return {
            row.pid: float(row.smUtil)
            for row in pynvml.nvmlDeviceGetProcessUtilization(handle, since)
        }
    except pynvml.NVMLError_NotFound:
        return {}


def judged(said: list[dict[str, float]], true: list[dict[str, float]]) -> dict[str, Any]:
    pairs = list(zip(said, true, strict=True))
    errors = [abs(one[tag] - real[tag]) for one, real in pairs for tag in real]
    return {
        "error": round(statistics.mean(errors), 1),
        "sum": round(max(sum(one.values()) for one in said), 1),
        "after_s": sum(one["ends"] > IDLE for one, real in pairs if real["ends"] == 0),
    }


if __name__ == "__main__":
    sys.exit(main())

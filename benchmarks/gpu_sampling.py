"""What looking at all GPUs of a node costs, and how much of it is NVML's calls.

    python benchmarks/gpu_sampling.py [--gpus 8] [--processes 3] [--ticks 100] [--json]

The looks are those of the agent: the same loop, through the real nvidia-ml-py, at the fake driver,
where of each GPU's processes one runs kernels all the time. Two runs in turn: one whose CPU time is
taken as a whole, and one whose calls of NVML are timed one by one. The difference is ours: with a
real driver the calls themselves take longer. Beside it, the processes' figures against the oracle:
the fake's GPU time by process. The looks follow one another at 10 Hz here, which changes what one
costs little. Needs Linux and a C compiler; no GPU.
"""

import argparse
import asyncio
import ctypes
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pynvml

from alnair.node.gpu_driver import GpuDriver
from alnair.node.gpu_looks import GpuLook, GpuLooks
from alnair.node.nvml import Nvml
from lib import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from native import build
from native.fake import Fake

EVERY = 0.1
#: Percent of a core at 1 Hz, without NVML's calls.
MOST_CPU_PERCENT = 1.0
POINTS = 3.0


class TimedCalls:
    """`pynvml`, with the CPU time that its calls take.

    Attributes:
        seconds: Of this process's threads, in calls.
        calls: How many.
    """

    def __init__(self, api: ModuleType) -> None:
        self._api = api
        self.seconds, self.calls = 0.0, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._api, name)
        if not name.startswith("nvml") or not callable(found):
            return found

        def call(*arguments: Any) -> Any:
            begun = time.thread_time()
            try:
                return found(*arguments)
            finally:
                self.seconds += time.thread_time() - begun
                self.calls += 1

        setattr(self, name, call)
        return call


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--ticks", type=int, default=100)
    parser.add_argument("--json", action="store_true", help="only the line of JSON")
    options = parser.parse_args()
    ctypes.CDLL(str(build.libraries() / "libnvidia-ml.so.1"))  # dlopen knows it by its name then
    with Fake("h100", gpus=options.gpus) as fake:
        os.environ["FAKEGPU_STATE"] = str(fake.state)
        with processes(fake, options.processes):
            result = asyncio.run(measure(fake, options.ticks))
    if not options.json:
        print(
            f"{options.gpus} GPUs with {options.processes} processes each: a look takes "
            f"{result['look_cpu_ms']} ms of CPU, {result['own_cpu_ms']} ms of them without NVML's "
            f"{result['calls']} calls: {result['own_pct_at_1hz']} % of a core at 1 Hz (at most "
            f"{MOST_CPU_PERCENT}); from begin to end {result['look_p99_ms']} ms (p99); figures of "
            f"processes within {result['worst_points']} points of the truth; {machine.describe()}",
            file=sys.stderr,
        )
    met = result["own_pct_at_1hz"] <= MOST_CPU_PERCENT and result["worst_points"] <= POINTS
    about = {"benchmark": "gpu_sampling", "gpus": options.gpus, "processes": options.processes}
    print(json.dumps({**about, **result, "met": met, "machine": machine.describe()}))
    return 0


@contextmanager
def processes(fake: Fake, each: int) -> Iterator[None]:
    program = build.client("hold", "-l:libcuda.so.1")
    with ExitStack() as stack:
        for gpu in range(fake.gpus):
            for number in range(each):
                visible = {"CUDA_VISIBLE_DEVICES": f"GPU-{fake.uuid(gpu)}"}
                environment = fake.environment(f"{gpu}-{number}", **visible)
                kernel = () if number else ("ns_50000000",)
                process = stack.enter_context(
                    build.start(program, 64, *kernel, environment=environment)
                )
                stack.callback(process.kill)
                assert process.stdout is not None
                assert process.stdout.readline() == "held\n"
        yield


async def measure(fake: Fake, ticks: int) -> dict[str, float]:
    timed = TimedCalls(pynvml)
    whole, watched = GpuDriver(), GpuDriver(lambda: Nvml.of(timed))
    seen: list[GpuLook] = []
    totals: list[float] = []
    inside: list[float] = []
    lengths: list[float] = []
    calls = 0
    for driver in (whole, watched):
        await driver.look()
    looks = {driver: GpuLooks(driver, [seen.append]) for driver in (whole, watched)}
    for one in looks.values():
        await one.look()
    seen.clear()
    tags = [f"{gpu}-0" for gpu in range(fake.gpus)]
    begun, before = time.monotonic(), [fake.work_ns(tag, gpu) for gpu, tag in enumerate(tags)]
    for _ in range(ticks):
        await asyncio.sleep(EVERY)
        cpu, at = time.process_time(), time.perf_counter()
        await looks[whole].look()
        totals.append(time.process_time() - cpu)
        lengths.append(time.perf_counter() - at)
        await asyncio.sleep(EVERY)
        timed.seconds, timed.calls = 0.0, 0
        await looks[watched].look()
        inside.append(timed.seconds)
        calls = timed.calls
    seconds = time.monotonic() - begun
    true = [
        (fake.work_ns(tag, gpu) - was) / 1e7 / seconds
        for (gpu, tag), was in zip(enumerate(tags), before, strict=True)
    ]
    errors = [abs(a - b) for a, b in zip(said(fake, seen), true, strict=True)]
    total, in_calls = statistics.median(totals), statistics.median(inside)
    for driver in (whole, watched):
        driver.close()
    return {
        "look_cpu_ms": round(1000 * total, 2),
        "nvml_cpu_ms": round(1000 * in_calls, 2),
        "own_cpu_ms": round(1000 * (total - in_calls), 2),
        "own_pct_at_1hz": round(100 * (total - in_calls), 3),
        "calls": calls,
        "look_p99_ms": round(1000 * sorted(lengths)[max(0, int(len(lengths) * 0.99) - 1)], 1),
        "worst_points": round(max(errors), 2),
    }


def said(fake: Fake, seen: list[GpuLook]) -> list[float]:
    """The mean of the busy process of each GPU."""
    uuids = [f"GPU-{fake.uuid(gpu)}" for gpu in range(fake.gpus)]
    return [
        statistics.mean(max(one.sm or 0 for one in look.samples[uuid].processes) for look in seen)
        for uuid in uuids
    ]


if __name__ == "__main__":
    sys.exit(main())

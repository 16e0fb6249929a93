"""Containers that share one fake GPU under compute limits, and what each of them got of it.

`Shares` starts the loads (clients/gpu_load.c) with the interposer, plays the vGPU server's part
beside them (the rates of alnair.sharing.rates every 50 ms, the correction of prices by NVML's
samples every second), and reads from the oracle how much GPU time each container's kernels really
had. All of it in the fake's time: with a virtual clock, half an hour passes in a minute.
"""

import ctypes
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, Self

import msgspec
import pynvml

from alnair.sharing import rates
from native import build
from native.container import LOW_PRIORITY, SOFT, Container
from native.fake import Fake

TICK_NS = 50_000_000
#: Ticks between two corrections by NVML.
CORRECTED = 20
MILLION = 1_000_000

TINY = "kernel:ns_4000_j20"
MIXED = "kernel:bi_4000_400000_25"
#: Its long runs take as long as a slice of the GPU's time, like a short run that was cut by one.
BIMODAL = "kernel:bi_4000_2000000_10"
FIVE = "kernel:ns_5000000_j20"
LONG = "kernel:ns_50000000_j20:1"
GRAPHS = "graph:ns_100000_j20:20"


class Tenant(msgspec.Struct, frozen=True):
    """A container and what it runs.

    Attributes:
        load: as gpu_load.c takes it.
        percent: its guaranteed share; 0: no limit.
        begin: seconds until it begins to work.
        seconds: how long it works; None: to the end.
        arrivals: requests per second, where the load has any.
        processes: so many processes run the load.
        preload: another library than ours, or None.
        environment: more variables.
        program: the client that runs the load.
    """

    load: str
    percent: int = 0
    soft: bool = False
    low: bool = False
    begin: float = 0.0
    seconds: float | None = None
    arrivals: float = 10.0
    processes: int = 1
    preload: str | None = None
    environment: Mapping[str, str] = {}
    program: str = "gpu_load"


class Run(msgspec.Struct, frozen=True):
    """What came of it: one row per tick and tenant.

    Attributes:
        times: seconds since the beginning, one per tick.
        work: cumulative GPU seconds at each tick, a list per tenant.
        printed: what each tenant's processes printed.
        scales: the last correction of each tenant's prices.
    """

    times: list[float]
    work: list[list[float]]
    printed: list[list[dict[str, Any]]]
    scales: list[float]

    def share(self, tenant: int, begin: float, end: float) -> float:
        """GPU time per time that a tenant had from `begin` to `end`."""
        first = next(at for at, time in enumerate(self.times) if time >= begin)
        last = next((at for at, time in enumerate(self.times) if time >= end), len(self.times) - 1)
        work = self.work[tenant]
        return (work[last] - work[first]) / (self.times[last] - self.times[first])

    def windows(self, tenant: int, begin: float, end: float, length: float = 1.0) -> list[float]:
        """The shares of one window after the other."""
        count = int((end - begin) / length)
        return [
            self.share(tenant, begin + at * length, begin + (at + 1) * length)
            for at in range(count)
        ]


@cache
def interposer(clock: str) -> Path:
    """The library: as shipped, or with the fake's virtual clock in the place of CLOCK_MONOTONIC."""
    if clock == "wall":
        return build.INTERPOSER
    return build.LIBRARIES / "libalnair_vgpu_virtual.so"


class Shares:
    """Runs tenants on one GPU for some seconds.

    Args:
        tenants: who shares it.
        seconds: how long, in the fake's time.
        clock: "virtual" or "wall".
        corrects: play the server's correction by NVML, too.
        serves: play the server at all.
        options: of the fake: slice_us, jitter, seed, event_ns, ...
    """

    def __init__(
        self,
        tenants: Sequence[Tenant],
        seconds: float,
        *,
        clock: str = "virtual",
        corrects: bool = True,
        serves: bool = True,
        turns: bool = True,
        then: Callable[["Shares", float], None] | None = None,
        **options: object,
    ) -> None:
        self.tenants, self.seconds, self.clock = tenants, seconds, clock
        self.corrects, self.serves, self.turns, self._then = corrects, serves, turns, then
        self._options = options
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        count = sum(tenant.processes for tenant in self.tenants)
        options = dict(self._options)
        if self.clock == "virtual":
            options["start_threads"] = count + 1
        self.fake = self._stack.enter_context(Fake(clock=self.clock, **options))
        self.containers = [
            self._stack.enter_context(
                Container(
                    self.fake.uuid(),
                    compute_percent=tenant.percent,
                    flags=SOFT * tenant.soft | LOW_PRIORITY * tenant.low,
                )
            )
            for tenant in self.tenants
        ]
        self._activity: list[rates.Activity | None] = [None] * len(self.tenants)
        self.prices = [rates.Price()] * len(self.tenants)
        self._charged = [0] * len(self.tenants)
        self._measured = [0.0] * len(self.tenants)
        self._pids: dict[int, int] = {}
        self._since_us = 0
        self._turns: dict[str, rates.Turn] = {}
        ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))  # its soname is then known to dlopen
        os.environ["FAKEGPU_STATE"] = str(self.fake.state)
        self._stack.callback(os.environ.pop, "FAKEGPU_STATE")
        pynvml.nvmlInit()
        self._stack.callback(pynvml.nvmlShutdown)
        self._nvml = pynvml.nvmlDeviceGetHandleByIndex(0)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self) -> Run:
        """Runs to the end; a client that fails fails it, with the client's words."""
        processes: list[list[subprocess.Popen[str]]] = []
        fake = self.fake
        for number, tenant in enumerate(self.tenants):
            client = build.client(tenant.program, "-l:libcuda.so.1", "-lfakegpu")
            environment = fake.environment(tag=str(number)) | dict(tenant.environment)
            if tenant.preload is not None:
                environment["LD_PRELOAD"] = tenant.preload
            else:
                environment |= self.containers[number].environment()
                environment["LD_PRELOAD"] = str(interposer(self.clock))
            length = self.seconds - tenant.begin if tenant.seconds is None else tenant.seconds
            processes.append(
                [
                    build.start(
                        client,
                        tenant.load,
                        length,
                        tenant.begin,
                        tenant.arrivals,
                        environment=environment | {"SEED": str(copy + 3)},
                    )
                    for copy in range(tenant.processes)
                ]
            )
        try:
            times, work = self._watch(processes)
            printed = [[_printed(process) for process in its] for its in processes]
        finally:
            for process in (one for its in processes for one in its):
                process.kill()
                process.wait()
                for stream in (process.stdin, process.stdout, process.stderr):
                    if stream:
                        stream.close()
        return Run(times, work, printed, [price.scale for price in self.prices])

    def _watch(
        self, processes: list[list[subprocess.Popen[str]]]
    ) -> tuple[list[float], list[list[float]]]:
        fake, names = self.fake, [str(number) for number in range(len(self.tenants))]
        self._pids = {one.pid: at for at, its in enumerate(processes) for one in its}
        fake.join()
        begun = fake.now_ns()
        times: list[float] = []
        work: list[list[float]] = [[] for _ in names]
        tick = 0
        try:
            while (now := fake.now_ns()) - begun < self.seconds * 1e9:
                if any(one.poll() for its in processes for one in its):
                    break
                times.append((now - begun) / 1e9)
                for name, its in zip(names, work, strict=True):
                    its.append(fake.work_ns(name) / 1e9)
                if self.serves:
                    self._serve(now, tick)
                if self._then:
                    self._then(self, times[-1])
                tick += 1
                fake.sleep_until_ns(begun + tick * TICK_NS)
        finally:
            fake.leave()
        return times, work

    # ---- the server's part -------------------------------------------------------------------

    def _serve(self, now: int, tick: int) -> None:
        claims: dict[str, rates.TenantDemand] = {}
        for number, (tenant, container) in enumerate(
            zip(self.tenants, self.containers, strict=True)
        ):
            slots = container.slots()
            reading = rates.Reading(
                now,
                sum(slot.device[0].charged_ns for slot in slots),
                sum(slot.device[0].launches for slot in slots),
                sum(slot.device[0].waiting for slot in slots),
            )
            activity = rates.observe(self._activity[number], reading)
            self._activity[number] = activity
            percent = container.limits.device[0].compute_percent
            claims[str(number)] = rates.TenantDemand(
                (percent or 100) / 100,
                tenant.soft,
                tenant.low,
                active=activity.is_active(now),
                used=activity.used,
                held_back=activity.held_back,
                pressed=activity.pressed,
                used_long=activity.used_long,
                limited=percent > 0,
            )
        granted = rates.grant(claims)
        turns = rates.turns(claims, granted, self._turns) if self.turns else {}
        self._turns = turns
        granted |= {name: turn.share for name, turn in turns.items()}
        beside = frozenset(turns)
        self.prices = [rates.moved(price, beside) for price in self.prices]
        if self.corrects:
            self._sample()
            if tick and tick % CORRECTED == 0:
                self._correct()
        for number, container in enumerate(self.containers):
            count, used = rates.neighbours(str(number), claims)
            turn = turns.get(str(number), rates.Turn(0.0, 0.0, 0.0))
            container.change(
                rate_ppm=round(granted[str(number)] * MILLION),
                rate_until_ns=now + 5 * TICK_NS,
                neighbours=count,
                others_ppm=round(used * MILLION),
                window_period_us=rates.PERIOD_NS // 1000 if turn.length else 0,
                window_begin_us=int(turn.begin * rates.PERIOD_NS / 1000),
                window_us=int(turn.length * rates.PERIOD_NS / 1000),
                cost_scale_ppm=round(self.prices[number].scale * MILLION),
            )

    def _sample(self) -> None:
        """Adds up NVML's utilisation samples of each tenant's processes, of a sixth of a second."""
        try:
            samples = pynvml.nvmlDeviceGetProcessUtilization(self._nvml, self._since_us)
        except pynvml.NVMLError:
            return
        for sample in samples:
            self._since_us = max(self._since_us, sample.timeStamp)
            tenant = self._pids.get(sample.pid)
            if tenant is not None:
                self._measured[tenant] += sample.smUtil / 600

    def _correct(self) -> None:
        for number, activity in enumerate(self._activity):
            if activity is None:
                continue
            price = self.prices[number]
            charged = activity.last.charged_ns - self._charged[number]
            self._charged[number] = activity.last.charged_ns
            self.prices[number] = rates.weigh(
                price,
                predicted=charged / price.scale / 1e9,
                measured=self._measured[number],
            )
            self._measured[number] = 0.0


def _printed(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, err = process.communicate(timeout=120)
    if process.returncode:
        raise RuntimeError(f"a load ended with {process.returncode}: {err}")
    found: dict[str, Any] = json.loads(out.splitlines()[-1]) if out.strip() else {}
    return found

"""Containers that share one fake GPU under compute limits, and what each of them got of it.

`Shares` starts the loads (clients/gpu_load.c) with the interposer and the vGPU server as shipped
(served.py), and reads from the oracle how much GPU time each container's kernels really had. All of
it in the fake's time: with a virtual clock, half an hour passes in a minute.
"""

import ctypes
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, Self

import msgspec

from alnair.node.vgpu.containers.container_slices import Share
from native import build
from native.container import LOW_PRIORITY, SOFT, Container
from native.fake import Fake
from native.served import PATIENCE, Served

TICK_NS = 50_000_000

TINY = "kernel:ns_4000_j20"
MIXED = "kernel:bi_4000_400000_25"
#: Its long runs take as long as a slice of the GPU's time, like a short run that was cut by one.
BIMODAL = "kernel:bi_4000_2000000_10"
FIVE = "kernel:ns_5000000_j20"
LONG = "kernel:ns_50000000_j20:1"
#: Kernels that leave room for those of other streams; and a training's steps, whose gradients are
#: reduced beside them.
TWO_STREAMS = "streams:ns_100000_j20_sm66:2"
FOUR_STREAMS = "streams:ns_100000_j20_sm33:4"
STEPS = "ddp:ns_100000_j20_sm110:80"
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
        environment: more variables; "{folder}" in them becomes a folder that is fresh in each
            case, and the same for all processes of the tenant.
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
        corrects: the server corrects prices by NVML.
        serves: there is a server; set to False while it runs, it dies.
        honest: that server may accuse nobody of doing what it may not.
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
        honest: bool = True,
        then: Callable[["Shares", float], None] | None = None,
        **options: object,
    ) -> None:
        self.tenants, self.seconds, self.clock = tenants, seconds, clock
        self.corrects, self.serves, self._then = corrects, serves, then
        self.honest = honest
        self._options = options
        self._stack = ExitStack()
        #: Of tenants of other libraries.
        self.folders: list[Path] = []

    def __enter__(self) -> Self:
        ours = [number for number, one in enumerate(self.tenants) if one.preload is None]
        count = sum(tenant.processes for tenant in self.tenants)
        options = dict(self._options)
        if self.clock == "virtual":
            options["start_threads"] = count + 1
        self.fake = self._stack.enter_context(Fake(clock=self.clock, **options))
        ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))  # its soname is then known to dlopen
        os.environ["FAKEGPU_STATE"] = str(self.fake.state)
        self._stack.callback(os.environ.pop, "FAKEGPU_STATE")
        self.served: Served | None = None
        self._folders: dict[int, Path] = {}
        if self.serves and ours:
            shares = [self._share(self.tenants[number]) for number in ours]
            base = Path(self._stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
            self.served = self._stack.enter_context(
                Served(
                    self.fake,
                    shares,
                    base,
                    virtual=self.clock == "virtual",
                    corrects=self.corrects,
                )
            )
            found = [container.folder for container in self.served.containers]
            self._folders = dict(zip(ours, found, strict=True))
        else:
            for number in ours:
                self._folders[number] = self._stack.enter_context(
                    self._unserved(self.tenants[number])
                ).folder
        self._ours = ours
        return self

    def __exit__(self, *_: object) -> None:
        accused = self.served.accused if self.served is not None else []
        self._stack.close()
        assert not (self.honest and accused), accused

    def _share(self, tenant: Tenant) -> Share:
        return Share(
            f"GPU-{self.fake.uuid()}",
            compute_percent=tenant.percent,
            soft=tenant.soft,
            low_priority=tenant.low,
        )

    def folder(self, number: int) -> Path:
        """The folder of a tenant's container."""
        return self._folders[number]

    def _unserved(self, tenant: Tenant) -> Container:
        flags = SOFT * tenant.soft | LOW_PRIORITY * tenant.low
        return Container(self.fake.uuid(), compute_percent=tenant.percent, flags=flags)

    def limit(self, tenant: int, percent: int) -> None:
        """Changes a tenant's limit while it runs."""
        assert self.served is not None
        self.served.limit(self._ours.index(tenant), percent)

    def run(self) -> Run:
        """Runs to the end; a client that fails fails it, with the client's words."""
        processes: list[list[subprocess.Popen[str]]] = []
        fake = self.fake
        for number, tenant in enumerate(self.tenants):
            client = build.client(tenant.program, "-l:libcuda.so.1", "-lfakegpu")
            environment = fake.environment(tag=str(number)) | dict(tenant.environment)
            if tenant.preload is not None:
                folder = self._stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))
                self.folders.append(Path(folder))
                environment = {k: v.replace("{folder}", folder) for k, v in environment.items()}
                environment["LD_PRELOAD"] = tenant.preload
            else:
                environment["ALNAIR_VGPU_DIR"] = str(self._folders[number])
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
            if self.served is not None and number in self._ours:
                for process in processes[-1]:
                    self.served.has(self._ours.index(number), process.pid)
            if tenant.preload is not None and self.clock == "wall" and not tenant.begin:
                self._await_work(str(number), processes[-1])
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
        its = range(len(self._ours))
        scales = [self.served.scale(at) for at in its] if self.served else []
        return Run(times, work, printed, scales)

    def _await_slots(self, processes: list[list[subprocess.Popen[str]]]) -> None:
        """The server registers them while time stands still; who ended instead says why itself."""
        assert self.served is not None
        began = time.perf_counter()
        for at, number in enumerate(self._ours):
            while self.served.registered(at) < len(processes[number]):
                if any(one.poll() is not None for one in processes[number]):
                    return
                assert time.perf_counter() - began < PATIENCE, f"tenant {number} has no slot"
                time.sleep(0.001)

    def _await_work(self, tag: str, processes: list[subprocess.Popen[str]]) -> None:
        """Another's library may not bear that two tenants begin at once; each has half a minute."""
        until = time.monotonic() + 30
        while not self.fake.kernels(tag) and all(one.poll() is None for one in processes):
            if time.monotonic() > until:
                raise RuntimeError(f"tenant {tag} ran no kernel within 30 s: see its library")
            time.sleep(0.01)

    def _watch(
        self, processes: list[list[subprocess.Popen[str]]]
    ) -> tuple[list[float], list[list[float]]]:
        fake, names = self.fake, [str(number) for number in range(len(self.tenants))]
        served = self.served
        if served is not None:
            self._await_slots(processes)
            served.join()
        else:
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
                if self._then:
                    self._then(self, times[-1])
                if served is not None and not self.serves:
                    served.die()
                tick += 1
                if served is not None:
                    served.until(begun + tick * TICK_NS)
                else:
                    fake.sleep_until_ns(begun + tick * TICK_NS)
        finally:
            if served is not None:
                served.leave()
            else:
                fake.leave()
        return times, work


def _printed(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, err = process.communicate(timeout=120)
    if process.returncode:
        raise RuntimeError(f"a load ended with {process.returncode}: {err}")
    found: dict[str, Any] = json.loads(out.splitlines()[-1]) if out.strip() else {}
    return found

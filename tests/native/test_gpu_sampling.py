"""What the profiler is told of fake GPUs, through the real nvidia-ml-py, against the oracle."""

import asyncio
import ctypes
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from subprocess import Popen

import pytest

from alnair.node.gpu_driver import GpuDriver
from alnair.node.gpu_looks import GpuLook, GpuLooks
from alnair.node.readings import device, processes
from alnair.profiler.gpu_iteration import FineCycle, iteration_of_gpus
from alnair.profiler.pods.busy_series import BusySeries
from alnair.profiler.samples import GpuSample
from native import build
from native.fake import Fake

MIB = 1 << 20
DRIVER = ("-l:libcuda.so.1", "-l:libfakegpu.so")
#: Points by which a mean over some seconds may differ from the truth.
POINTS = 3.0


class Watch:
    """The agent's looks at a machine, at 1 Hz or as a test has it."""

    def __init__(self, fake: Fake) -> None:
        self.fake = fake
        self.driver = GpuDriver()
        self.uuids = [f"GPU-{fake.uuid(gpu)}" for gpu in range(fake.gpus)]
        self.seen: list[GpuLook] = []
        self.looks = GpuLooks(self.driver, [self.seen.append])

    async def look(self) -> GpuLook:
        await self.looks.look()
        return self.seen[-1]

    async def sample(self, gpu: int = 0) -> GpuSample:
        return (await self.look()).samples[self.uuids[gpu]]

    def process(self, pid: int, gpu: int = 0) -> float:
        """What the looks after the first said of a process's compute time, on the whole."""
        return sum(
            one.sm * (look.now - before.now)
            for before, look in pairwise(self.seen)
            for one in look.samples[self.uuids[gpu]].processes
            if one.pid == pid and one.sm is not None
        ) / (self.seen[-1].now - self.seen[0].now)

    async def undisturbed(self, looks: int, **pids: int) -> dict[str, tuple[float, float]]:
        """Of three times the first `measured` that is right: a fake GPU slips with its machine."""
        for _ in range(3):
            found = await self.measured(looks, **pids)
            if within(found):
                break
        return found

    async def measured(self, looks: int, **pids: int) -> dict[str, tuple[float, float]]:
        """For so many looks, of each tag's process: percent measured, percent in truth."""
        self.seen.clear()
        await self.look()
        begun, before = time.monotonic(), {tag: self.fake.work_ns(tag) for tag in pids}
        for number in range(looks):
            await asyncio.sleep(max(0.0, begun + number + 1 - time.monotonic()))
            await self.look()
        seconds = time.monotonic() - begun
        return {
            tag: (
                self.process(pid),
                (self.fake.work_ns(tag) - before[tag]) / 1e7 / seconds,
            )
            for tag, pid in pids.items()
        }


@contextmanager
def watching(fake: Fake) -> Iterator[Watch]:
    """In this process, on that machine."""
    ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))  # its soname is then known to dlopen
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAKEGPU_STATE", str(fake.state))
        watch = Watch(fake)
        watch.driver._look()
        try:
            yield watch
        finally:
            fake.fault("")  # a call that hangs is in the memory that is about to go
            watch.driver.close()


@pytest.fixture
def start() -> Iterator[Callable[..., "Popen[str]"]]:
    """Starts programs on a fake GPU, and kills them in the end."""
    with ExitStack() as stack:

        def begin(fake: Fake, tag: str, name: str, *words: object, **more: str) -> "Popen[str]":
            program = build.client(name, *DRIVER, "-lm")
            environment = fake.environment(tag, **more)
            process = stack.enter_context(build.start(program, *words, environment=environment))
            stack.callback(process.kill)
            return process

        yield begin


def within(measured: dict[str, tuple[float, float]]) -> bool:
    return all(abs(said - true) <= POINTS for said, true in measured.values())


def sums(watch: Watch, gpu: int = 0) -> list[float]:
    return [
        sum(one.sm or 0 for one in look.samples[watch.uuids[gpu]].processes) for look in watch.seen
    ]


@pytest.mark.timing
async def test_two_processes_of_one_gpu_are_told_apart_and_each_measured_right(
    fake: Fake, start: Callable[..., "Popen[str]"]
) -> None:
    pids = {
        "a": start(fake, "a", "gpu_load", "kernel:ns_2000000", 60).pid,
        "b": start(fake, "b", "gpu_load", "infer:ns_5000000:2", 60, 0, 20).pid,
    }
    with watching(fake) as watch:
        await asyncio.sleep(1.0)
        measured = await watch.undisturbed(5, **pids)
        assert within(measured), measured
        assert measured["a"][1] - measured["b"][1] > 3 * POINTS, "there is something to tell apart"
        assert max(sums(watch)) <= 100.0


@pytest.mark.timing
async def test_a_process_that_computes_now_and_then_is_measured_right(
    fake: Fake, start: Callable[..., "Popen[str]"]
) -> None:
    pid = start(fake, "a", "gpu_load", "infer:ns_60000000:1", 60, 0, 2).pid
    with watching(fake) as watch:
        await asyncio.sleep(1.0)
        measured = await watch.undisturbed(6, a=pid)
        assert within(measured), measured
        assert 0 < measured["a"][1] < 50


@pytest.mark.timing
async def test_the_driver_s_own_samples_tell_iterations_that_looks_of_a_second_cannot(
    fake: Fake, start: Callable[..., "Popen[str]"]
) -> None:
    process = start(fake, "a", "gpu_load", "kernel:ns_2000000:1", 60)
    period = 1.2

    async def iterate() -> None:
        due = time.monotonic()
        while True:
            for number, part in ((signal.SIGCONT, 0.5), (signal.SIGSTOP, 0.5)):
                process.send_signal(number)
                due += part * period
                await asyncio.sleep(due - time.monotonic())

    with watching(fake) as watch:
        await asyncio.sleep(0.5)
        steps = asyncio.create_task(iterate())
        for _ in range(3):  # where this machine stands still, the iterations are none
            series = BusySeries()
            for _ in range(16):
                await asyncio.sleep(1.0)
                series.take((await watch.look()).samples, {watch.uuids[0]: "pod"})
            found = iteration_of_gpus(series.of("pod"))
            if isinstance(found, FineCycle):
                break
        steps.cancel()
    assert isinstance(found, FineCycle), found
    assert found.seconds == pytest.approx(period, rel=0.02)


@pytest.mark.timing
async def test_under_mps_parts_are_measured_right_and_never_more_than_the_gpu(
    start: Callable[..., "Popen[str]"],
) -> None:
    with Fake(mode="mps") as fake, watching(fake) as watch:
        share = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "40"}
        pids = {
            tag: start(fake, tag, "gpu_load", "kernel:ns_2000000", 60, **share).pid
            for tag in ("a", "b")
        }
        await asyncio.sleep(1.0)
        measured = await watch.undisturbed(4, **pids)
        assert within(measured), measured
        assert max(sums(watch)) <= 100.0


async def test_a_process_that_stops_computing_shows_nothing_within_two_looks(
    fake: Fake, start: Callable[..., "Popen[str]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first look is at the last second. It is to see the work, though it may come later.
    for module in (device, processes):
        monkeypatch.setattr(module, "PERIOD_US", 60_000_000)
    words = ("launch 0 ns_5000000 100", "sync", "say done", "read")
    process = start(fake, "a", "timed", *words)
    with watching(fake) as watch:
        assert process.stdout
        assert await asyncio.to_thread(process.stdout.readline) == "done\n"
        (busy,) = (await watch.sample()).processes
        assert busy.sm
        for _ in range(2):
            await asyncio.sleep(1.0)
            sample = await watch.sample()
        (idle,) = sample.processes
        assert (idle.pid, idle.sm, idle.memory_copy) == (process.pid, 0.0, 0.0)
        assert sample.util == 0.0
        assert {percent for _, percent in sample.busy} == {0.0}
        assert (idle.memory_bytes or 0) > 0


@pytest.mark.parametrize(
    "fault", ["nvml_util_stale=1", "nvml_util_garbage=1", "nvml_util_foreign=1", "nvml_util_none=1"]
)
async def test_what_drivers_get_wrong_changes_nothing(
    fake: Fake, start: Callable[..., "Popen[str]"], fault: str
) -> None:
    busy = start(fake, "a", "hold", 64, "ns_5000000").pid
    idle = start(fake, "b", "hold", 64)
    assert idle.stdout
    assert await asyncio.to_thread(idle.stdout.readline) == "held\n"
    fake.fault(fault)
    with watching(fake) as watch:
        await watch.look()
        for _ in range(10):  # where this machine stands still, so does its load
            await asyncio.sleep(0.7)
            found = {one.pid: one.sm for one in (await watch.sample()).processes}
            assert found.keys() == {busy, idle.pid}
            assert found[idle.pid] == 0.0
            if (found[busy] or 0) > 50:
                break
        assert 50 < (found[busy] or 0) <= 100


async def test_memory_is_told_by_process_without_what_the_driver_keeps(
    fake: Fake, start: Callable[..., "Popen[str]"]
) -> None:
    held = {tag: start(fake, tag, "hold", mib) for tag, mib in (("a", 100), ("b", 300))}
    for process in held.values():
        assert process.stdout
        assert await asyncio.to_thread(process.stdout.readline) == "held\n"
    with watching(fake) as watch:
        sample = await watch.sample()
    assert {one.pid: one.memory_bytes for one in sample.processes} == {
        process.pid: fake.used(tag) for tag, process in held.items()
    }
    assert sample.memory_bytes == fake.used("a") + fake.used("b")


async def test_counters_of_energy_and_links_grow(
    fake: Fake, start: Callable[..., "Popen[str]"]
) -> None:
    with watching(fake) as watch:
        before = await watch.sample()
        words = ("stream s", f"copy s {64 * MIB}", "sync s", "launch 0 ns_5000000 100", "sync")
        assert (await asyncio.to_thread(start(fake, "a", "timed", *words).wait)) == 0
        await asyncio.sleep(0.3)
        after = await watch.sample()
    assert (after.pcie_rx or 0) - (before.pcie_rx or 0) == 64 * MIB
    assert after.pcie_tx == before.pcie_tx
    assert (after.energy_j or 0) - (before.energy_j or 0) > 0.5 * 0.8 * 700 * 0.9
    assert after.power_w is not None
    assert after.temperature_c is not None
    assert after.profiling["sm_active"] > 0
    assert after.throttle == ()


# ---- what goes wrong -----------------------------------------------------------------------------


async def test_a_wedged_gpu_stops_neither_the_others_nor_the_agent_and_comes_back() -> None:
    with Fake(gpus=3) as fake, watching(fake) as watch:
        await watch.look()
        fake.fault("wedge=1")
        for _ in range(4):
            await watch.look()
            assert watch.seen[-1].samples.keys() == {watch.uuids[0], watch.uuids[2]}
            assert watch.seen[-1].late == {watch.uuids[1]}
        await watch.driver.look()
        assert len(watch.driver._under_way) == 1
        fake.fault("")
        async with asyncio.timeout(20):
            while True:
                if watch.uuids[1] in (await watch.look()).samples:
                    break
                await asyncio.sleep(0.01)
        assert watch.seen[-1].late == frozenset()
        assert watch.driver.opened == 1


async def test_of_a_lost_gpu_nothing_is_told_until_it_is_back(fake: Fake) -> None:
    with watching(fake) as watch:
        assert (await watch.look()).samples
        fake.fault("lost=0")
        lost = await watch.look()
        assert (lost.samples, lost.loads, lost.usages) == ({}, {}, {})
        assert lost.problems == {watch.uuids[0]: f"{watch.uuids[0]}: GPU is lost"}
        await watch.driver.look()
        assert (await watch.look()).samples == {}
        fake.fault("")
        watch.driver.suspect()
        await watch.driver.look()
        back = (await watch.look()).samples[watch.uuids[0]]
        assert back.memory_total
        assert back.processes == ()


async def test_mig_devices_are_told_of_by_instance(start: Callable[..., "Popen[str]"]) -> None:
    with Fake("h100") as fake:
        fake.mig("1g.10gb,3g.40gb")
        with watching(fake) as watch:
            first = await watch.sample()
            assert len(first.mig) == 2
            small = next(uuid for uuid, one in first.mig.items() if (one.memory_total or 0) < 2**34)
            visible = {"CUDA_VISIBLE_DEVICES": small}
            process = start(fake, "a", "hold", 64, "ns_5000000", **visible)
            assert process.stdout
            assert await asyncio.to_thread(process.stdout.readline) == "held\n"
            await watch.look()
            for _ in range(10):  # where this machine stands still, so does its load
                await asyncio.sleep(0.7)
                sample = await watch.sample()
                if (sample.mig[small].util or 0) > 50:
                    break
    (one,) = sample.mig[small].processes
    (other,) = (device for uuid, device in sample.mig.items() if uuid != small)
    assert (one.pid, one.sm) == (process.pid, sample.mig[small].util)
    assert (one.sm or 0) > 50
    assert (other.util, other.processes, other.memory_bytes) == (0.0, (), 0)
    assert sample.util is None

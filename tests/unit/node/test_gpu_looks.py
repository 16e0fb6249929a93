"""Looks at GPUs go on whatever the driver does."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from alnair.node import gpu_looks, gpu_rounds
from alnair.node.gpu_looks import GpuLook, GpuLooks
from alnair.node.nvml import NvmlError, NvmlGpu
from alnair.node.readings.values import Load, Reading, Usage
from alnair.profiler.samples import GpuSample

READING = Reading(GpuSample(0.0, util=5.0), Load({7: 1 << 20}, {}), Usage(5.0, 1 << 30), 2)


class Driver:
    """As `GpuDriver`, saying what a test wants."""

    def __init__(self, *uuids: str) -> None:
        self.gpus = tuple(NvmlGpu(i, uuid, "T", 1 << 34) for i, uuid in enumerate(uuids))
        self.opened = 1
        self.lost: set[str] = set()
        self.waiting: list[tuple[str, int]] = []
        self.before: Callable[[str], object] = lambda uuid: None
        self.before_note: Callable[[str], object] = lambda uuid: None
        self.asked: list[str] = []
        self.noted: list[str] = []

    def read(self, uuid: str) -> Reading:
        self.asked.append(uuid)
        self.before(uuid)
        if uuid in self.lost:
            raise NvmlError(f"{uuid} is lost")
        return READING

    def note(self, uuid: str) -> None:
        self.noted.append(uuid)
        self.before_note(uuid)
        if uuid in self.lost:
            raise NvmlError(f"{uuid} is lost")

    def xids(self) -> list[tuple[str, int]]:
        self.before("")
        found, self.waiting = self.waiting, []
        return found


class Wedge:
    """Lets the calls for some GPUs wait."""

    def __init__(self) -> None:
        self.uuids: set[str] = set()
        self.over = threading.Event()
        self.inside = 0

    def __call__(self, uuid: str) -> None:
        if uuid in self.uuids:
            self.inside += 1
            self.over.wait()


@pytest.fixture
def wedge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wedge]:
    monkeypatch.setattr(gpu_rounds, "BUDGET", 0.2)
    made = Wedge()
    yield made
    made.over.set()


async def left_behind(threads: int) -> None:
    """Wait until so many threads ask; those that are done need a moment to end."""
    async with asyncio.timeout(20):
        while True:
            if sum(one.name == "own-thread" for one in threading.enumerate()) == threads:
                return
            await asyncio.sleep(0.001)


async def test_each_gpu_answers_for_itself() -> None:
    driver, seen = Driver("a", "b"), list[GpuLook]()
    looks = GpuLooks(driver, [seen.append])
    driver.lost, driver.waiting = {"b"}, [("b", 79)]
    await looks.look()
    assert (seen[0].usages, seen[0].problems) == ({"a": READING.usage}, {"b": "b is lost"})
    assert (seen[0].xids, seen[0].opened) == ((("b", 79),), 1)
    assert (seen[0].loads, seen[0].samples) == ({"a": READING.load}, {"a": READING.sample})
    assert seen[0].unmapped == {"a": 2}


async def test_a_gpu_that_is_missing_after_a_reopening_is_still_asked_for() -> None:
    driver, seen = Driver("a", "b"), list[GpuLook]()
    looks = GpuLooks(driver, [seen.append])
    await looks.look()
    driver.gpus, driver.lost = driver.gpus[:1], {"b"}
    await looks.look()
    assert seen[1].problems == {"b": "b is lost"}


async def test_a_gpu_that_hangs_holds_up_no_other_and_is_asked_once(
    wedge: Wedge, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, seen = Driver("a", "b", "c"), list[GpuLook]()
    looks = GpuLooks(driver, [seen.append])
    driver.before, wedge.uuids = wedge, {"b"}
    await left_behind(0)
    for _ in range(5):
        await looks.look()
    assert [look.samples.keys() for look in seen] == [{"a", "c"}] * 5
    assert [look.late for look in seen] == [{"b"}] * 5
    assert not any(look.problems for look in seen)
    await left_behind(1)
    assert wedge.inside == 1
    monkeypatch.setattr(gpu_looks, "PATIENCE", 0.0)
    await looks.look()
    assert seen[-1].problems == {"b": "the NVIDIA driver has not answered for 0 s"}
    assert (seen[-1].late, seen[-1].samples.keys()) == (frozenset(), {"a", "c"})
    wedge.over.set()
    async with asyncio.timeout(20):
        while "b" not in seen[-1].samples:
            await looks.look()
            await asyncio.sleep(0.001)
    assert (seen[-1].late, seen[-1].problems) == (frozenset(), {})


async def test_a_gpu_that_answers_while_another_is_asked_is_late_and_not_silent(
    wedge: Wedge,
) -> None:
    driver, seen = Driver("a", "b"), list[GpuLook]()
    asking: dict[str, threading.Thread] = {}

    def before(uuid: str) -> None:
        asking[uuid] = threading.current_thread()
        if uuid == "a":
            wedge.over.wait()
        elif uuid == "b" and not wedge.over.is_set():
            wedge.over.set()
            while asking["a"].name == "own-thread":  # it goes on waiting, for other work
                time.sleep(0.001)

    driver.before = before
    looks = GpuLooks(driver, [seen.append])
    await looks.look()
    assert (seen[0].late, seen[0].problems) == ({"a"}, {})
    await looks.look()
    assert seen[1].samples.keys() == {"a", "b"}


async def test_where_all_gpus_hang_there_is_one_thread_for_each(wedge: Wedge) -> None:
    driver, seen = Driver("a", "b"), list[GpuLook]()
    looks = GpuLooks(driver, [seen.append])
    driver.before, wedge.uuids = wedge, {"", "a", "b"}
    await left_behind(0)
    for _ in range(4):
        await looks.look()
    await left_behind(3)
    assert seen[-1].late == {"a", "b"}


async def test_errors_that_were_fetched_late_are_told_with_the_next_look(wedge: Wedge) -> None:
    driver, seen = Driver("a"), list[GpuLook]()
    looks = GpuLooks(driver, [seen.append])
    driver.before, wedge.uuids = wedge, {""}
    await looks.look()
    assert seen[-1].xids == ()
    driver.waiting = [("a", 31)]
    wedge.over.set()
    async with asyncio.timeout(20):
        while not seen[-1].xids:
            await looks.look()
            await asyncio.sleep(0.001)
    assert seen[-1].xids == (("a", 31),)


async def test_a_slow_answer_is_waited_for_while_others_make_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_rounds, "BUDGET", 20.0)
    driver, seen = Driver("a", "b"), list[GpuLook]()
    driver.before = lambda uuid: threading.Event().wait(0.01)
    await GpuLooks(driver, [seen.append]).look()
    assert seen[0].samples.keys() == {"a", "b"}


async def test_what_is_not_foreseen_is_not_swallowed() -> None:
    driver = Driver("a")

    def fail(uuid: str) -> None:
        if uuid:
            raise ValueError("a mistake of ours")

    driver.before = fail
    with pytest.raises(ValueError, match="a mistake of ours"):
        await GpuLooks(driver, []).look()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 (what is looked at has no event)
            await asyncio.sleep(0.001)


async def test_between_two_looks_only_gpus_that_are_wanted_finely_are_asked_what_processes_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_looks, "BETWEEN", 0.01)
    driver, wanted = Driver("a", "b"), ["b", "not there"]
    driver.lost = {"b"}  # which the next look says
    seen: list[GpuLook] = []
    running = asyncio.create_task(GpuLooks(driver, [seen.append], 0.2, finely=lambda: wanted).run())
    await until(lambda: len(seen) > 2)
    assert set(driver.noted) == {"b"}
    wanted.clear()
    await until(lambda: len(seen) > 3)
    driver.noted.clear()
    await until(lambda: len(seen) > 5)
    running.cancel()
    assert not driver.noted


async def test_a_gpu_that_hangs_when_it_is_asked_in_between_is_asked_nothing_more(
    wedge: Wedge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_looks, "BETWEEN", 0.01)
    driver, seen = Driver("a", "b"), list[GpuLook]()
    driver.before_note, wedge.uuids = wedge, {"b"}
    looks = GpuLooks(driver, [seen.append], 0.1, finely=lambda: ["b"])
    running = asyncio.create_task(looks.run())
    await until(lambda: bool(seen) and seen[-1].late == {"b"})
    driver.asked.clear()
    until_then = len(seen) + 2
    await until(lambda: len(seen) > until_then)
    running.cancel()
    assert (wedge.inside, set(driver.asked), seen[-1].usages.keys()) == (1, {"a"}, {"a"})

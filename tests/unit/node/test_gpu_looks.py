"""Looks at GPUs go on whatever the driver does."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from alnair.node import gpu_looks
from alnair.node.gpu_looks import GpuLook, GpuLooks
from alnair.node.nvml import NvmlError, NvmlGpu, Usage


class Driver:
    """As `GpuDriver`, saying what a test wants."""

    def __init__(self, *uuids: str) -> None:
        self.gpus = tuple(NvmlGpu(i, uuid, "T", 1 << 34) for i, uuid in enumerate(uuids))
        self.opened = 1
        self.lost: set[str] = set()
        self.waiting: list[tuple[str, int]] = []
        self.before: Callable[[], object] = lambda: None

    def usage(self, uuid: str) -> Usage:
        self.before()
        if uuid in self.lost:
            raise NvmlError(f"{uuid} is lost")
        return Usage(5.0, 1 << 30)

    def xids(self) -> list[tuple[str, int]]:
        found, self.waiting = self.waiting, []
        return found


async def test_each_gpu_answers_for_itself() -> None:
    driver, seen = Driver("a", "b"), list[GpuLook]()
    looks = GpuLooks(driver, [seen.append])
    driver.lost, driver.waiting = {"b"}, [("b", 79)]
    await looks.look()
    assert (seen[0].usages, seen[0].problems) == ({"a": Usage(5.0, 1 << 30)}, {"b": "b is lost"})
    assert (seen[0].xids, seen[0].opened) == ((("b", 79),), 1)


async def test_a_gpu_that_is_missing_after_a_reopening_is_still_asked_for() -> None:
    driver, seen = Driver("a", "b"), list[GpuLook]()
    looks = GpuLooks(driver, [seen.append])
    await looks.look()
    driver.gpus, driver.lost = driver.gpus[:1], {"b"}
    await looks.look()
    assert seen[1].problems == {"b": "b is lost"}


async def test_a_driver_that_hangs_is_told_while_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, seen = Driver("a"), asyncio.Queue[GpuLook]()
    looks = GpuLooks(driver, [seen.put_nowait])
    await looks.look()
    assert not seen.get_nowait().problems
    monkeypatch.setattr(gpu_looks, "PATIENCE", 0.01)
    let_go = threading.Event()
    driver.before = let_go.wait
    looking = asyncio.create_task(looks.look())
    for _ in range(2):
        assert (await seen.get()).problems == {"a": "the NVIDIA driver has not answered for 0.01 s"}
    let_go.set()
    await looking
    while not (last := await seen.get()).usages:
        pass
    assert not last.problems


async def test_what_is_not_foreseen_is_not_swallowed() -> None:
    driver = Driver("a")

    def fail() -> None:
        raise ValueError("a mistake of ours")

    driver.before = fail
    with pytest.raises(ValueError, match="a mistake of ours"):
        await GpuLooks(driver, []).look()

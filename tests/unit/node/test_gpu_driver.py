"""NVML is opened when there is a driver, and again when the driver was reloaded."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from alnair.node import gpu_driver
from alnair.node.gpu_driver import GpuDriver
from alnair.node.nvml import Nvml, NvmlError, Reading, Usage
from alnair.node.own_thread import in_own_thread


class ApiError(Exception):
    """As `pynvml.NVMLError`."""

    def __init__(self, text: str, value: int = 15) -> None:
        super().__init__(text)
        self.value = value


class Api:
    """The functions of `pynvml` that are used, on a driver that comes and goes.

    A handle holds only as long as NVML is open, as with the real driver.
    """

    NVMLError = ApiError

    def __init__(self) -> None:
        self.version = ""
        self.gpus: list[str] = []
        self.lost: set[str] = set()
        self.is_mig = False
        self.opens = 0
        self.open_now = 0
        self.before: Callable[[], object] = lambda: None

    def _there(self) -> None:
        if not self.version:
            raise ApiError("driver not loaded", 9)

    def nvmlInit(self) -> None:  # noqa: N802 (NVML's names)
        self._there()
        self.opens += 1
        self.open_now += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open_now -= 1

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        self._there()
        return self.version

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        self._there()
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> tuple[str, int]:  # noqa: N802
        return self.gpus[index], self.opens

    def nvmlDeviceGetUUID(self, handle: tuple[str, int]) -> str:  # noqa: N802
        self._answers(handle)
        return handle[0]

    def nvmlDeviceGetName(self, handle: tuple[str, int]) -> str:  # noqa: N802
        return "T"

    def nvmlDeviceGetMemoryInfo(self, handle: tuple[str, int]) -> Any:  # noqa: N802
        self.before()
        return SimpleNamespace(total=1 << 34, used=1 << 30)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: tuple[str, int]) -> list[Any]:  # noqa: N802
        self._answers(handle)
        return []

    nvmlDeviceGetGraphicsRunningProcesses = nvmlDeviceGetComputeRunningProcesses  # noqa: N815
    nvmlDeviceGetMPSComputeRunningProcesses = nvmlDeviceGetComputeRunningProcesses  # noqa: N815

    def nvmlDeviceGetUtilizationRates(self, handle: tuple[str, int]) -> Any:  # noqa: N802
        self._answers(handle)
        if self.is_mig:
            raise ApiError("Not Supported", 3)
        return SimpleNamespace(gpu=42, memory=7)

    def nvmlEventSetCreate(self) -> None:  # noqa: N802
        raise ApiError("Not Supported")

    def nvmlDeviceGetProcessUtilization(self, handle: tuple[str, int], since: int) -> list[Any]:  # noqa: N802
        return []

    def _answers(self, handle: tuple[str, int]) -> None:
        if not self.version or handle[0] in self.lost or handle[1] != self.opens:
            raise ApiError("GPU is lost")


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
async def driver(api: Api) -> GpuDriver:
    return GpuDriver(lambda: Nvml.of(api))


async def test_a_driver_that_comes_later_is_seen(api: Api, driver: GpuDriver) -> None:
    await driver.look()
    assert (driver.opened, driver.gpus) == (0, ())
    assert driver.problem == "the NVIDIA driver does not answer: driver not loaded"
    with pytest.raises(NvmlError, match="driver not loaded"):
        driver.read("a")
    waiting = asyncio.create_task(driver.reopened(0))
    api.version, api.gpus = "1", ["a", "b"]
    await driver.look()
    await waiting
    assert (driver.opened, driver.problem, driver.version) == (1, "", "1")
    assert [gpu.uuid for gpu in driver.gpus] == ["a", "b"]
    assert driver.read("a").load.memory == {}


async def test_nothing_is_opened_again_while_all_is_well(api: Api, driver: GpuDriver) -> None:
    api.version, api.gpus = "1", ["a"]
    for _ in range(3):
        await driver.look()
        driver.read("a")
    assert (api.opens, driver.opened) == (1, 1)
    driver.close()
    assert api.open_now == 0


async def test_a_driver_that_was_reloaded_is_opened_anew(api: Api, driver: GpuDriver) -> None:
    api.version, api.gpus = "1", ["a"]
    await driver.look()
    api.version = ""
    await driver.look()
    assert driver.problem
    api.version, api.gpus = "2", ["a", "b"]
    await driver.look()
    assert (driver.opened, driver.problem, driver.version) == (2, "", "2")
    assert driver.read("b").load.memory == {}
    assert api.open_now == 1


async def test_a_reload_between_two_looks_is_noticed(api: Api, driver: GpuDriver) -> None:
    api.version, api.gpus = "1", ["a"]
    await driver.look()
    api.version = "2"
    await driver.look()
    assert (driver.opened, driver.version) == (2, "2")


async def test_for_a_gpu_that_is_lost_it_is_opened_once_and_the_others_go_on(
    api: Api, driver: GpuDriver
) -> None:
    api.version, api.gpus = "1", ["a", "b"]
    await driver.look()
    driver.read("a")
    driver.read("b")
    api.lost = {"a"}
    for _ in range(3):
        with pytest.raises(NvmlError):
            driver.read("a")
        await driver.look()
        assert driver.read("b").load.memory == {}
    assert driver.opened == 2


async def test_a_gpu_that_came_back_is_seen_once_it_is_suspected(
    api: Api, driver: GpuDriver
) -> None:
    api.version, api.gpus, api.lost = "1", ["a", "b"], {"b"}
    await driver.look()
    api.lost = set()
    await driver.look()
    with pytest.raises(NvmlError, match="there is no GPU b on this node"):
        driver.read("b")
    driver.suspect()
    await driver.look()
    assert driver.read("b").usage.memory_bytes == 1 << 30


async def test_a_gpu_in_mig_mode_answers_though_its_use_is_not_measured(
    api: Api, driver: GpuDriver
) -> None:
    api.version, api.gpus = "1", ["a"]
    await driver.look()
    assert driver.read("a").usage == Usage(42.0, 1 << 30, is_mean=False)
    api.is_mig = True
    assert driver.read("a").usage == Usage(None, 1 << 30, is_mean=False)


async def test_where_no_errors_are_reported_there_are_none(api: Api, driver: GpuDriver) -> None:
    assert driver.xids() == []
    api.version, api.gpus = "1", ["a"]
    await driver.look()
    assert driver.xids() == []


class Hanging:
    """A call that does not return before it is let go."""

    def __init__(self) -> None:
        self.let_go, self.is_in = threading.Event(), threading.Event()
        self.asking: asyncio.Future[Reading] | None = None

    def __call__(self) -> None:
        self.is_in.set()
        self.let_go.wait()

    async def end(self) -> None:
        self.let_go.set()
        assert self.asking is not None
        await asyncio.wait({self.asking})


@pytest.fixture
async def hanging(
    api: Api, driver: GpuDriver, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Hanging]:
    """Of two GPUs the first one's call hangs."""
    monkeypatch.setattr(gpu_driver, "CLOSING", 0.05)
    monkeypatch.setattr(gpu_driver, "HANGS", 0.0)
    api.version, api.gpus = "1", ["a", "b"]
    await driver.look()
    call = api.before = Hanging()
    call.asking = in_own_thread(driver.read, "a")
    await asyncio.to_thread(call.is_in.wait)
    api.before = lambda: None
    yield call
    await call.end()


async def test_closing_does_not_wait_for_a_call_that_hangs(
    api: Api, driver: GpuDriver, hanging: Hanging
) -> None:
    driver.close()
    assert api.open_now == 1


async def test_a_call_that_hangs_holds_up_no_other(driver: GpuDriver, hanging: Hanging) -> None:
    assert driver.read("b").usage.memory_bytes == 1 << 30
    assert driver.xids() == []


async def test_as_long_as_a_call_hangs_nothing_is_opened_again(
    api: Api, driver: GpuDriver, hanging: Hanging
) -> None:
    driver.suspect()
    await driver.look()
    assert (driver.opened, api.open_now) == (1, 1)
    assert driver.read("b").usage.memory_bytes == 1 << 30
    await hanging.end()
    await driver.look()
    assert (driver.opened, api.open_now) == (2, 1)


async def test_an_opening_that_fails_half_way_leaves_nothing_open(api: Api) -> None:
    api.version, api.gpus, api.lost = "1", ["a"], {"a"}
    with pytest.raises(NvmlError):
        Nvml.of(api)
    assert api.open_now == 0

"""The GPU that is tested on: a real one, or the fake; and what is true of it."""

import ctypes
import ctypes.util
import importlib
import os
import threading
import time
import uuid
from contextlib import suppress
from typing import Protocol

from native.fake import Fake

MIB = 1 << 20


class Machine(Protocol):
    """One GPU, and the truth about it that no tenant tells."""

    name: str
    total: int
    is_fake: bool

    def uuid(self) -> uuid.UUID:
        """The GPU's UUID."""

    def environment(self, tag: str) -> dict[str, str]:
        """What a client needs to find the GPU; tag: the container it belongs to."""

    def used(self, tag: str, pids: list[int]) -> int:
        """Bytes that the GPU's own accounts hold for a container, or for its processes."""

    def watch(self, tag: str, pids: list[int], limit: int) -> None:
        """Notes from now on the most that a container holds."""

    def peak(self, tag: str) -> int:
        """The most bytes since `watch`."""


class FakeMachine:
    """The fake GPU in wall time: its accounts see every instant."""

    is_fake = True

    def __init__(self, profile: str) -> None:
        self._fake = Fake(profile)
        self.name = f"fake {profile}"
        self.total = self._fake.total()

    def uuid(self) -> uuid.UUID:
        return self._fake.uuid()

    def environment(self, tag: str) -> dict[str, str]:
        return self._fake.environment(tag)

    def used(self, tag: str, pids: list[int]) -> int:
        return self._fake.used(tag)

    def watch(self, tag: str, pids: list[int], limit: int) -> None:
        self._fake.reset(tag)
        self._fake.watch(limit, tag)

    def peak(self, tag: str) -> int:
        return self._fake.peak(tag)


class RealMachine:
    """The first visible GPU, by NVML: it is asked 200 times a second, so short peaks are missed."""

    is_fake = False
    PERIOD = 0.005

    def __init__(self) -> None:
        self._nvml = importlib.import_module("pynvml")
        self._nvml.nvmlInit()
        self._handle = self._nvml.nvmlDeviceGetHandleByIndex(0)
        name = self._nvml.nvmlDeviceGetName(self._handle)
        driver = self._nvml.nvmlSystemGetDriverVersion()
        self.driver = str(driver)
        self.name = f"{name}, driver {driver}"
        self.total = int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).total)
        self._peaks: dict[str, int] = {}
        self._watched: dict[str, list[int]] = {}

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(self._nvml.nvmlDeviceGetUUID(self._handle).removeprefix("GPU-"))

    def environment(self, tag: str) -> dict[str, str]:
        path = os.environ.get("LD_LIBRARY_PATH")
        return {"LD_LIBRARY_PATH": path} if path else {}

    def used(self, tag: str, pids: list[int]) -> int:
        processes = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        return sum(int(p.usedGpuMemory or 0) for p in processes if p.pid in pids)

    def watch(self, tag: str, pids: list[int], limit: int) -> None:
        del limit
        self._peaks[tag], self._watched[tag] = 0, pids
        threading.Thread(target=self._sample, args=(tag, pids), daemon=True).start()

    def _sample(self, tag: str, pids: list[int]) -> None:
        while self._watched.get(tag) is pids:
            with suppress(self._nvml.NVMLError):
                self._peaks[tag] = max(self._peaks[tag], self.used(tag, pids))
            time.sleep(self.PERIOD)

    def peak(self, tag: str) -> int:
        self._watched.pop(tag, None)
        return self._peaks[tag]


def find() -> tuple[Machine | None, str]:
    """The machine to test on, or None and why there is none.

    With FAKEGPU_STATE set it is a fake GPU of its own (the variable may name a profile, as "h200").
    """
    if wanted := os.environ.get("FAKEGPU_STATE"):
        return FakeMachine(wanted if wanted.isalnum() else "h200"), ""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None, "no NVIDIA driver here: libcuda.so.1 is not found"
    if result := driver.cuInit(0):
        return None, f"the NVIDIA driver finds no GPU: cuInit gave {result}"
    try:
        return RealMachine(), ""
    except Exception as error:  # noqa: BLE001 - whatever NVML says, the tests cannot run
        return None, f"NVML does not answer: {error}"

"""The GPU that is tested on: a real one, or the fake; and what is true of it."""

import ctypes
import importlib
import os
import platform
import uuid
from pathlib import Path
from typing import Any, Protocol

from gpu.nvml_account import NvmlAccount
from gpu.place import driver_environment, is_bundle

MIB = 1 << 20


class Machine(Protocol):
    """One GPU, and the truth about it that no tenant tells.

    Attributes:
        name: The model and its driver.
        model: The model alone.
        driver: Its driver's version.
        total: Its bytes.
        is_fake: It is not a GPU: figures of time say nothing.
        nvml: What NVML tells of processes.
    """

    name: str
    model: str
    driver: str
    total: int
    is_fake: bool
    nvml: NvmlAccount

    def uuid(self) -> uuid.UUID:
        """The GPU's UUID."""

    def environment(self, tag: str) -> dict[str, str]:
        """What a client needs to find the GPU; tag: the container it belongs to."""

    def used(self, tag: str, pids: list[int]) -> int:
        """Bytes that the GPU's own accounts hold for a container, or for its processes."""

    def watch(self, tag: str, pids: list[int], limit: int) -> None:
        """Notes from now on the most that a container holds."""

    def peaks(self, tag: str) -> tuple[int, int | None]:
        """The most bytes since `watch`: what NVML showed, and at every instant where one knows."""


class NvmlMachine:
    """The GPU that CUDA shows first, as NVML tells of it."""

    def __init__(self, uuid_of_first: uuid.UUID, *, is_fake: bool) -> None:
        api: Any = importlib.import_module("pynvml")
        api.nvmlInit()
        self.is_fake = is_fake
        self._uuid = uuid_of_first
        handle = api.nvmlDeviceGetHandleByUUID(f"GPU-{uuid_of_first}")
        self.model = str(api.nvmlDeviceGetName(handle))
        self.driver = str(api.nvmlSystemGetDriverVersion())
        fake = "the fake GPU as " if is_fake else ""
        self.name = f"{fake}{self.model}, driver {self.driver}"
        self.total = int(api.nvmlDeviceGetMemoryInfo(handle).total)
        self.nvml = NvmlAccount(api, handle)

    def uuid(self) -> uuid.UUID:
        return self._uuid

    def environment(self, tag: str) -> dict[str, str]:
        found = driver_environment()
        # The fake tells containers apart by it; by UUID all programs see the GPU that NVML was
        # asked about, in whatever order they count.
        return {**found, **({"FAKEGPU_TAG": tag} if self.is_fake else {})} | (
            {} if self.is_fake else {"CUDA_VISIBLE_DEVICES": f"GPU-{self._uuid}"}
        )

    def used(self, tag: str, pids: list[int]) -> int:
        held = self.nvml.used(pids)
        self.nvml.note(tag, held)
        return held

    def watch(self, tag: str, pids: list[int], limit: int) -> None:
        self.nvml.watch(tag, pids)

    def peaks(self, tag: str) -> tuple[int, int | None]:
        return self.nvml.peak(tag), None


class FakeMachine(NvmlMachine):
    """The fake GPU of a checkout, in wall time: its own accounts see every instant."""

    def __init__(self, profile: str) -> None:
        fake = importlib.import_module("native.fake").Fake(profile)
        self._fake = fake
        build = importlib.import_module("native.build")
        ctypes.CDLL(str(build.PLAIN / "libnvidia-ml.so.1"))  # its name is then known to dlopen
        os.environ["FAKEGPU_STATE"] = str(fake.state)
        super().__init__(fake.uuid(), is_fake=True)
        self.name = f"fake {profile}"
        self.total = fake.total()

    def environment(self, tag: str) -> dict[str, str]:
        return dict(self._fake.environment(tag))

    def used(self, tag: str, pids: list[int]) -> int:
        return int(self._fake.used(tag))

    def watch(self, tag: str, pids: list[int], limit: int) -> None:
        self._fake.reset(tag)
        self._fake.watch(limit, tag)
        super().watch(tag, pids, limit)

    def peaks(self, tag: str) -> tuple[int, int | None]:
        return self.nvml.peak(tag), int(self._fake.peak(tag))


def find() -> tuple[Machine | None, str]:
    """The machine to test on, or None and why there is none.

    In a checkout FAKEGPU_STATE makes a fake GPU (it may name a profile, as "h200"). A bundle takes
    the driver that programs find here, whichever it is.
    """
    wanted = os.environ.get("FAKEGPU_STATE")
    if wanted and not is_bundle():
        return FakeMachine(wanted if wanted.isalnum() else "h200"), ""
    driver, why = opened()
    if driver is None:
        return None, why
    first, text = ctypes.c_int(), ctypes.create_string_buffer(16)
    if result := driver.cuDeviceGet(ctypes.byref(first), 0) or driver.cuDeviceGetUuid(text, first):
        return None, f"the NVIDIA driver does not name its first GPU: CUresult {result}"
    is_fake = hasattr(driver, "fakegpu_now_ns")
    try:
        return NvmlMachine(uuid.UUID(bytes=text.raw), is_fake=is_fake), ""
    except Exception as error:  # noqa: BLE001 - whatever NVML says, the tests cannot run
        return None, f"NVML does not answer: {error}"


def opened() -> tuple[ctypes.CDLL | None, str]:
    """The driver with a GPU, or None and why not; needs nothing but Python."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None, "no NVIDIA driver here: libcuda.so.1 is not found"
    if result := driver.cuInit(0):
        return None, f"the NVIDIA driver finds no GPU: cuInit gave {result}"
    return driver, ""


def driver_file() -> Path | None:
    """The file of the driver that this process has loaded, or a program of the fake would."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if (path := Path(line.split(maxsplit=5)[-1])).name.startswith("libcuda.so"):
            return path
    named = [Path(one, "libcuda.so.1") for one in os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    return next((path for path in named if path.is_file()), None)


def around() -> dict[str, str]:
    """What else of a machine may matter to the figures."""
    return {
        "kernel": platform.release(),
        "processor": platform.machine(),
        "cpus": str(os.cpu_count()),
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
    }

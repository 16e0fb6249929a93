"""Measures one GPU: `python -m alnair.node.gpu_report.measuring GPU-UUID`; a line of JSON.

A process of its own, as a driver may hang or crash. It makes small kernels only, and takes less
than 64 MiB beside its context.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec

from alnair.node.gpu_report import entries

_LAST_SECOND: Final = 60
_PAIRS: Final = 2000
#: Bytes of a copy whose speed is measured, in memory of twice the size.
_COPIED: Final = 16 << 20
_KERNELS: Final = 4000
#: Work, not a spin on a clock; the fake reads the time from the name, 100 us.
_PTX: Final = (
    b".version 6.0\n.target sm_50\n.address_size 64\n"
    b".visible .entry ns_100000(.param .u64 steps, .param .u64 out) {\n"
    b".reg .pred %p;\n.reg .b64 %n, %x, %o;\n"
    b"ld.param.u64 %n, [steps];\nld.param.u64 %o, [out];\nmov.u64 %x, 1;\n"
    b"loop:\nsetp.eq.u64 %p, %n, 0;\n@%p bra done;\n"
    b"mad.lo.u64 %x, %x, 6364136223846793005, 1442695040888963407;\n"
    b"sub.u64 %n, %n, 1;\nbra loop;\n"
    b"done:\nsetp.eq.u64 %p, %x, 0;\n@%p st.global.u64 [%o], %x;\nret;\n}\n\0"
)


class Measured(msgspec.Struct, frozen=True):
    """What one GPU and its driver are like.

    Attributes:
        library: The driver's file.
        cuda: Its version, as 12040.
        name: Of the GPU, as CUDA has it.
        total: Bytes, as CUDA has it.
        sms: Streaming multiprocessors.
        event_pair_ns: Host time of two cuEventRecord, less what a call from here costs.
        block_bytes: That the smallest allocation takes.
        pool_step_bytes: By which a memory pool grows.
        slice_us: How long another process has the GPU in its turn; 0: no turns were seen.
        copy_gb_s: Speed of a copy within the GPU's memory.
        host_copy_gb_s: The same in memory that a slice has of the host, beyond its own; 0: this GPU
            and driver have none for slices.
        host_on_gpu_bytes: How much of that was on the GPU after it was used; 0 is as it should be.
        entries: The driver's functions.
        is_fake: The driver is the test double: nothing here is a GPU's.
    """

    library: str
    cuda: int
    name: str
    total: int
    sms: int
    event_pair_ns: float
    block_bytes: int
    pool_step_bytes: int
    slice_us: float
    copy_gb_s: float
    host_copy_gb_s: float
    host_on_gpu_bytes: int
    entries: entries.Entries
    is_fake: bool


class _Driver:
    """The driver's functions by name; what fails raises."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        self.device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(self.device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
        self("cuCtxSetCurrent", self.context)

    def __call__(self, name: str, *arguments: Any) -> None:
        if result := getattr(self.library, name)(*arguments):
            raise OSError(f"{name} gave CUresult {result}")

    def kernel(self) -> "_Kernel":
        return _Kernel(self)

    def event(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self("cuEventCreate", ctypes.byref(made), 0)
        return made

    def elapsed_us(self, first: ctypes.c_void_p, last: ctypes.c_void_p) -> float:
        found = ctypes.c_float()
        self("cuEventElapsedTime", ctypes.byref(found), first, last)
        return found.value * 1000


class _Kernel:
    """A kernel of about 100 us."""

    def __init__(self, driver: _Driver) -> None:
        self._driver, module = driver, ctypes.c_void_p()
        self._function, self._steps = ctypes.c_void_p(), ctypes.c_uint64(50_000)
        self._out = ctypes.c_uint64(0)
        driver("cuModuleLoadData", ctypes.byref(module), _PTX)
        driver("cuModuleGetFunction", ctypes.byref(self._function), module, b"ns_100000")
        both = ctypes.addressof(self._steps), ctypes.addressof(self._out)
        self._arguments = (ctypes.c_void_p * 2)(*both)
        best = min(self._once() for _ in range(4))
        self._steps.value = max(1, round(50_000 * 100 / max(best, 1.0)))

    def _once(self) -> float:
        first, last = self._driver.event(), self._driver.event()
        self._driver("cuEventRecord", first, None)
        self.launch()
        self._driver("cuEventRecord", last, None)
        self._driver("cuEventSynchronize", last)
        return self._driver.elapsed_us(first, last)

    def launch(self) -> None:
        one = (1, 1, 1, 32, 1, 1, 0)
        self._driver("cuLaunchKernel", self._function, *one, None, self._arguments, None)


def measure() -> Measured:
    """Measure the first GPU that this process sees."""
    driver = _Driver()
    version, name, total, sms = ctypes.c_int(), ctypes.create_string_buffer(256), 0, ctypes.c_int()
    driver("cuDriverGetVersion", ctypes.byref(version))
    driver("cuDeviceGetName", name, len(name), driver.device)
    driver("cuDeviceGetAttribute", ctypes.byref(sms), 16, driver.device)
    total = _memory(driver)[1]
    path = library_file()
    host_speed, came = _beyond(driver)
    return Measured(
        library=str(path),
        cuda=version.value,
        name=name.value.decode(),
        total=total,
        sms=sms.value,
        event_pair_ns=_event_pair(driver),
        block_bytes=_block(driver),
        pool_step_bytes=_pool_step(driver),
        slice_us=_slice(driver),
        copy_gb_s=_copy_speed(driver, _plain(driver)),
        host_copy_gb_s=host_speed,
        host_on_gpu_bytes=came,
        entries=entries.compared(driver.library, path, version.value),
        is_fake=hasattr(driver.library, "fakegpu_now_ns"),
    )


def library_file() -> Path:
    """The file of the driver that this process has loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if (path := Path(line.split(maxsplit=5)[-1])).name.startswith("libcuda.so"):
            return path
    return Path("libcuda.so.1")


def _memory(driver: _Driver) -> tuple[int, int]:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def _block(driver: _Driver) -> int:
    memory = ctypes.c_uint64()
    before = _memory(driver)[0]
    driver("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(1))
    after = _memory(driver)[0]
    driver("cuMemFree_v2", memory)
    return before - after


def _pool_step(driver: _Driver) -> int:
    """What the default pool reserves for one byte; 0 where the driver has no pools."""
    pool, memory, reserved = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
    try:
        driver("cuDeviceGetDefaultMemPool", ctypes.byref(pool), driver.device)
        driver("cuMemAllocAsync", ctypes.byref(memory), ctypes.c_size_t(1), None)
        driver("cuMemPoolGetAttribute", pool, 5, ctypes.byref(reserved))
        driver("cuMemFreeAsync", memory, None)
        driver("cuCtxSynchronize")
    except (OSError, AttributeError):
        return 0
    return reserved.value


def _plain(driver: _Driver) -> ctypes.c_uint64:
    memory = ctypes.c_uint64()
    driver("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(2 * _COPIED))
    return memory


def _copy_speed(driver: _Driver, memory: ctypes.c_uint64) -> float:
    """GB/s of copies within this memory, by events; frees it."""
    first, last, best = driver.event(), driver.event(), float("inf")
    half = ctypes.c_uint64(memory.value + _COPIED)
    for _ in range(3):
        driver("cuEventRecord", first, None)
        driver("cuMemcpyDtoDAsync_v2", half, memory, ctypes.c_size_t(_COPIED), None)
        driver("cuEventRecord", last, None)
        driver("cuEventSynchronize", last)
        best = min(best, driver.elapsed_us(first, last))
    driver("cuMemFree_v2", memory)
    return round(_COPIED / best / 1000, 1) if best > 0 else 0.0


def _beyond(driver: _Driver) -> tuple[float, int]:
    """The speed of memory as the library takes it beyond a slice, and how much came to the GPU.

    The calls are those of native/vgpu/memory/swapped.c.
    """
    concurrent, memory, size = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_size_t(2 * _COPIED)
    driver("cuDeviceGetAttribute", ctypes.byref(concurrent), 89, driver.device)
    if not concurrent.value:
        return 0.0, 0
    before = _memory(driver)[0]
    try:
        driver("cuMemAllocManaged", ctypes.byref(memory), size, 2)
        driver("cuMemAdvise", memory, size, 3, ctypes.c_int(-1))
        driver("cuMemAdvise", memory, size, 5, driver.device)
        driver("cuMemsetD8_v2", memory, ctypes.c_ubyte(1), size)
        driver("cuCtxSynchronize")
    except OSError:
        return 0.0, 0
    came = max(0, before - _memory(driver)[0])
    return _copy_speed(driver, memory), came


def _event_pair(driver: _Driver) -> float:
    first, last, current = driver.event(), driver.event(), ctypes.c_void_p()
    began = time.perf_counter_ns()
    for _ in range(_PAIRS):
        driver("cuEventRecord", first, None)
        driver("cuEventRecord", last, None)
    recorded = time.perf_counter_ns()
    for _ in range(2 * _PAIRS):
        driver("cuCtxGetCurrent", ctypes.byref(current))
    asked = time.perf_counter_ns()
    driver("cuCtxSynchronize")
    return max(0.0, (recorded - began) - (asked - recorded)) / _PAIRS


def _slice(driver: _Driver) -> float:
    """The usual gap between our kernels while another process has as many."""
    kernel = driver.kernel()
    words = [sys.executable, "-m", "alnair.node.gpu_report.measuring", "rival"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as rival:
        assert rival.stdout
        rival.stdout.readline()
        events = [driver.event() for _ in range(_KERNELS // 4)]
        for event in events:
            kernel.launch()
            driver("cuEventRecord", event, None)
        driver("cuCtxSynchronize")
        rival.kill()
    between = [driver.elapsed_us(a, b) for a, b in pairwise(events)]
    usual = median(between)
    gaps = [one - usual for one in between if one > 3 * usual]
    return round(median(gaps), 1) if len(gaps) > 2 else 0.0


def _rival() -> None:
    """Keeps the GPU busy until it is killed, or for a few seconds."""
    driver = _Driver()
    kernel = driver.kernel()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for _ in range(100):
            kernel.launch()
        # Two hundred wait at most, so that little is left when this process is killed.
        driver("cuCtxSynchronize")


if __name__ == "__main__":
    signal.alarm(_LAST_SECOND)
    if sys.argv[1:] == ["rival"]:
        _rival()
    else:
        sys.stdout.write(msgspec.json.encode(measure()).decode() + "\n")
    sys.stdout.flush()
    os._exit(0)

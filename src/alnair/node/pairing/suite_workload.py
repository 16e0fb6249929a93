"""One of the suite's workloads, by the CUDA driver API alone; runs until it is ended.

    python suite_workload.py KIND

A program of its own: it needs Python and a driver, and nothing of Alnair, so that any container can
run it. It prints `step N`. A step is the same work on every GPU and beside every neighbour: kernels
do a fixed number of multiplications, so they take longer where somebody else has the GPU, and on a
smaller GPU. (The fake GPU goes by a kernel's name, which says how long it takes alone.)
"""

import ctypes
import sys
import time
import zlib
from collections.abc import Callable

#: Does one step, and waits until it is done.
Step = Callable[[], None]
#: Milliseconds are those of a GPU that does so many multiplications at once in a nanosecond, as a
#: TITAN X does.
REFERENCE = 5000.0
#: Arithmetic lanes of a multiprocessor by compute capability. Source: CUDA programming guide,
#: arithmetic instructions, 32-bit floating-point add, multiply and multiply-add.
LANES = {3: 192, 5: 128, 6: 64, 7: 64, 8: 128, 9: 128}
LANES_OF = {(6, 1): 128, (8, 0): 64}
#: Threads of a kernel that has the whole GPU.
BLOCKS, THREADS = 1024, 256
#: Attributes of a device (cuda.h).
CLOCK_KHZ, MULTIPROCESSORS, MAJOR, MINOR = 13, 16, 75, 76
MIB = 1 << 20
#: Seconds between two lines of output.
SPEAK = 0.05

KERNEL = """\
.version 6.0
.target {target}
.address_size 64
.visible .entry {name}()
{{
.reg .f32 %x;
.reg .u32 %n;
.reg .pred %p;
mov.f32 %x, 0f3F800000;
mov.u32 %n, {loops};
again:
{body}
sub.u32 %n, %n, 1;
setp.ne.u32 %p, %n, 0;
@%p bra again;
setp.eq.f32 %p, %x, 0f00000000;
@%p trap;
ret;
}}
"""
#: Multiplications of one loop.
UNROLLED = 32


class Gpu:
    """The first GPU that is visible, and its driver."""

    def __init__(self) -> None:
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            sys.exit(f"suite: there is no GPU driver here: {error}")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self._device = device
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self._sms = self._attribute(MULTIPROCESSORS)
        version = self._attribute(MAJOR), self._attribute(MINOR)
        # Any newer GPU takes what is made for an older one.
        self._target = "sm_50" if version[0] >= 5 else "sm_30"
        lanes = LANES_OF.get(version, LANES.get(version[0], 128))
        #: How much faster than the reference it computes.
        self._speed = self._sms * lanes * self._attribute(CLOCK_KHZ) / 1e6 / REFERENCE

    def call(self, name: str, *arguments: object) -> None:
        """Call the driver; end the program if it refuses."""
        result = getattr(self._driver, name)(*arguments)
        if result:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorName(result, ctypes.byref(text))
            said = text.value.decode() if text.value else "unknown error"
            sys.exit(f"suite: {name}: {said} ({result})")

    def kernel(self, milliseconds: float, part: float = 1.0) -> "Kernel":
        """Return a kernel of so much work, on a part of the GPU's multiprocessors."""
        sms = max(1, round(self._sms * part))
        nanoseconds = max(1, round(milliseconds * 1e6 / self._speed))
        name = f"ns_{nanoseconds}" + (f"_sm{sms}" if part < 1 else "")
        each = milliseconds * 1e6 * REFERENCE / (BLOCKS * THREADS)
        code = KERNEL.format(
            target=self._target,
            name=name,
            loops=max(1, round(each / UNROLLED)),
            body="\n".join(["fma.rn.f32 %x, %x, %x, %x;"] * UNROLLED),
        )
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), code.encode())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return Kernel(self, function, max(1, round(BLOCKS * part)))

    def memory(self, size: int) -> ctypes.c_uint64:
        """Return the address of memory of the GPU, so many bytes."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def copy(self, to: ctypes.c_uint64, source: ctypes.c_uint64, size: int) -> None:
        """Copy within the GPU, behind what was asked for before."""
        self.call("cuMemcpyDtoDAsync_v2", to, source, ctypes.c_size_t(size), None)

    def fetch(self, to: ctypes.c_uint64, source: object, size: int) -> None:
        """Copy from the host."""
        self.call("cuMemcpyHtoD_v2", to, source, ctypes.c_size_t(size))

    def wait(self) -> None:
        """Wait until all is done."""
        self.call("cuCtxSynchronize")

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value


class Kernel:
    """Work that can be asked for."""

    def __init__(self, gpu: Gpu, function: ctypes.c_void_p, blocks: int) -> None:
        self._gpu = gpu
        self._function = function
        self._blocks = blocks

    def launch(self) -> None:
        """Ask for it, behind what was asked for before."""
        shape = (self._blocks, 1, 1, THREADS, 1, 1)
        self._gpu.call("cuLaunchKernel", self._function, *shape, 0, None, None, None)


def compute_bound(gpu: Gpu) -> Step:
    """Large kernels, one after the other."""
    work = gpu.kernel(4)

    def step() -> None:
        work.launch()
        work.launch()
        gpu.wait()

    return step


def memory_bound(gpu: Gpu) -> Step:
    """Copies within the GPU's memory: nothing but its bandwidth."""
    size = 128 * MIB
    one, other = gpu.memory(size), gpu.memory(size)

    def step() -> None:
        for _ in range(8):
            gpu.copy(other, one, size)
        gpu.wait()

    return step


def small_kernels(gpu: Gpu) -> Step:
    """Many short kernels on a quarter of the GPU: launching them is half of the time."""
    work = gpu.kernel(0.03, 0.25)

    def step() -> None:
        for _ in range(64):
            work.launch()
        gpu.wait()

    return step


def input_bound(gpu: Gpu) -> Step:
    """A batch that the processor prepares, its copy, and a short kernel."""
    batch = bytes(range(256)) * (8 * MIB // 256)
    there, work = gpu.memory(len(batch)), gpu.kernel(1.5)

    def step() -> None:
        zlib.compress(batch[: MIB // 2], 6)
        gpu.fetch(there, batch, len(batch))
        work.launch()
        gpu.wait()

    return step


def training(gpu: Gpu) -> Step:
    """A batch, its way forward and back through ten layers, and an update of the weights."""
    batch, size = bytes(4 * MIB), 32 * MIB
    there, weights, gradients = gpu.memory(len(batch)), gpu.memory(size), gpu.memory(size)
    forward, backward = gpu.kernel(0.2, 0.75), gpu.kernel(0.4)

    def step() -> None:
        gpu.fetch(there, batch, len(batch))
        for kernel in (forward, backward):
            for _ in range(10):
                kernel.launch()
        gpu.copy(weights, gradients, size)
        gpu.wait()
        time.sleep(0.001)  # the loop around it

    return step


def inference(gpu: Gpu) -> Step:
    """Four requests at once, and then none for a while."""
    request = bytes(MIB)
    there, work = gpu.memory(len(request)), gpu.kernel(0.3, 0.5)

    def step() -> None:
        for _ in range(4):
            gpu.fetch(there, request, len(request))
            for _ in range(3):
                work.launch()
            gpu.wait()
        time.sleep(0.02)

    return step


KINDS = {
    "compute-bound": compute_bound,
    "memory-bound": memory_bound,
    "small-kernels": small_kernels,
    "input-bound": input_bound,
    "training": training,
    "inference": inference,
}


def main() -> None:
    """Run the workload that is named."""
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: suite_workload.py {'|'.join(KINDS)}")
    step = KINDS[sys.argv[1]](Gpu())
    done, spoke = 0, 0.0
    while True:
        step()
        done += 1
        if (now := time.monotonic()) - spoke >= SPEAK:
            print("step", done, flush=True)
            spoke = now


if __name__ == "__main__":
    main()

"""What a CUDA context costs on a GPU: `python -m alnair.node.vgpu.context_probe GPU-UUID`.

A process of its own, for a driver may hang or crash while it makes a context. It makes one, asks
NVML what the driver charges to this process, says so in a line of JSON and ends. The figure is that
of a process outside of MPS, whose contexts share what they need and cost less.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from alnair.node import driver_root

#: Seconds after which the kernel ends it, should nobody be left who does.
_LAST_SECOND: Final = 120
#: Names the driver's libraries, colon-separated, where the loader does not find them by itself.
LIBRARIES: Final = "ALNAIR_DRIVER_LIBRARIES"


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a probe says.

    Attributes:
        bytes: Cost of a context; 0 where there is a problem.
        whole_gpu: The driver tells no use per process: it is by how much the GPU's use grew.
        problem: Why there is no figure, or "".
    """

    bytes: int = 0
    whole_gpu: bool = False
    problem: str = ""


def environment(uuid: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """Variables of a probe: it sees one GPU, through the driver itself, outside of MPS."""
    kept = {
        name: value
        for name, value in inherited.items()
        if name != "LD_PRELOAD" and not name.startswith("CUDA_")
    }
    # Without this a client looks at the default place, where another's daemon may be.
    return kept | {"CUDA_VISIBLE_DEVICES": uuid, "CUDA_MPS_PIPE_DIRECTORY": "/dev/null"}


def measure(uuid: str) -> Measured:
    """Make a context on the first GPU that this process sees, which has this UUID."""
    try:
        named = os.environ.get(LIBRARIES, "").split(":")
        driver_root.load(Path(path) for path in named if path)
        import pynvml  # noqa: PLC0415 (an extra that other commands lack)

        pynvml.nvmlInit()
        gpu = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        # Where the driver counts pids of another namespace, this one may be somebody else's.
        is_foreign = os.getpid() in _by_pid(pynvml, gpu)
        before = int(pynvml.nvmlDeviceGetMemoryInfo(gpu).used)
        if problem := _make_context():
            return Measured(problem=problem)
        mine = None if is_foreign else _by_pid(pynvml, gpu).get(os.getpid())
        after = int(pynvml.nvmlDeviceGetMemoryInfo(gpu).used)
    except Exception as error:  # noqa: BLE001 (whatever a driver says: it is told)
        return Measured(problem=str(error) or repr(error))
    if mine:
        return Measured(mine)
    if after <= before:
        return Measured(problem="NVML does not show what the context uses")
    return Measured(after - before, whole_gpu=True)


def _by_pid(api: Any, gpu: Any) -> dict[int, int | None]:
    found = api.nvmlDeviceGetComputeRunningProcesses(gpu)
    return {process.pid: process.usedGpuMemory for process in found}


def _make_context() -> str:
    """Make the primary context; return "" or what went wrong."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    for name, arguments in (
        ("cuInit", (ctypes.c_uint(0),)),
        ("cuDeviceGet", (ctypes.byref(device), ctypes.c_int(0))),
        ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), device)),
    ):
        if result := getattr(cuda, name)(*arguments):
            return f"{name} failed with CUresult {result}"
    return ""


if __name__ == "__main__":
    signal.alarm(_LAST_SECOND)
    sys.stdout.write(msgspec.json.encode(measure(sys.argv[1])).decode() + "\n")
    sys.stdout.flush()
    # What the driver does when a process ends in order may hang, too: the kernel tidies up.
    os._exit(0)

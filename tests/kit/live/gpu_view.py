"""What a program in a container sees of its GPUs."""

import json
from typing import Any

#: What a program sees of its GPUs, as one line of JSON.
VIEW = """
import ctypes as c, json, os, uuid
cuda, nvml = c.CDLL("libcuda.so.1"), c.CDLL("libnvidia-ml.so.1")
def call(library, name, *arguments):
    result = getattr(library, name)(*arguments)
    assert result == 0, (name, result)
count, device, context = c.c_int(), c.c_int(), c.c_void_p()
total, free, whole = c.c_size_t(), c.c_size_t(), c.c_size_t()
identity = c.create_string_buffer(16)
call(cuda, "cuInit", 0)
call(cuda, "cuDeviceGetCount", c.byref(count))
call(cuda, "cuDeviceGet", c.byref(device), 0)
call(cuda, "cuDeviceGetUuid_v2", identity, device)
call(cuda, "cuDeviceTotalMem_v2", c.byref(total), device)
call(cuda, "cuDevicePrimaryCtxRetain", c.byref(context), device)
call(cuda, "cuCtxSetCurrent", context)
call(cuda, "cuMemGetInfo_v2", c.byref(free), c.byref(whole))
class Memory(c.Structure):
    _fields_ = [("total", c.c_ulonglong), ("free", c.c_ulonglong), ("used", c.c_ulonglong)]
number, handle, memory = c.c_uint(), c.c_void_p(), Memory()
call(nvml, "nvmlInit_v2")
call(nvml, "nvmlDeviceGetCount_v2", c.byref(number))
call(nvml, "nvmlDeviceGetHandleByIndex_v2", 0, c.byref(handle))
call(nvml, "nvmlDeviceGetMemoryInfo", handle, c.byref(memory))
print(json.dumps({
    "cuda": count.value, "nvml": number.value, "uuid": f"GPU-{uuid.UUID(bytes=identity.raw)}",
    "total": total.value >> 20, "info": whole.value >> 20, "nvml_total": memory.total >> 20,
    "limited": os.path.exists("/run/alnair/vgpu"), "preload": os.path.exists("/etc/ld.so.preload"),
}), flush=True)
"""


def seen(text: str) -> dict[str, Any]:
    """What a program that ran VIEW saw; before it, the library may say that it waited."""
    found: dict[str, Any] = json.loads(next(line for line in text.splitlines() if line[0] == "{"))
    return found


def as_a_slice(memory_mib: int, uuid: str) -> dict[str, Any]:
    """What is to be seen in a slice."""
    return {
        "cuda": 1,
        "nvml": 1,
        "uuid": uuid,
        "limited": True,
        "preload": True,
        "total": memory_mib,
        "info": memory_mib,
        "nvml_total": memory_mib,
    }

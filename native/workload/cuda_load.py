"""As cuda_load.c, in Python: takes memory of a GPU by the driver API and keeps it busy."""

import argparse
import ctypes
import json
import sys
import time
import uuid

#: It spins for `ns` nanoseconds, on a real GPU by its clock; the fake GPU goes by its name.
KERNEL = """\
.version 6.0
.target sm_50
.address_size 64
.visible .entry ns_{ns}()
{{
.reg .u64 %t<3>;
.reg .pred %p;
mov.u64 %t1, %globaltimer;
again:
mov.u64 %t2, %globaltimer;
sub.u64 %t2, %t2, %t1;
setp.lt.u64 %p, %t2, {ns};
@%p bra again;
ret;
}}
"""


def main() -> None:
    """Runs it, and prints a line of JSON at the end, and each so many seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory-mib", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--kernel-us", type=int, default=1000)
    parser.add_argument("--every", type=float, default=0.0)
    given = parser.parse_args()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        sys.exit(f"cuda_load: there is no GPU driver here: {error}")

    def call(name: str, *arguments: object) -> None:
        result = getattr(driver, name)(*arguments)
        if result:
            text = ctypes.c_char_p()
            driver.cuGetErrorName(result, ctypes.byref(text))
            said = text.value.decode() if text.value else "unknown error"
            sys.exit(f"cuda_load: {name}: {said} ({result})")

    device, gpus = ctypes.c_int(), ctypes.c_int()
    model = ctypes.create_string_buffer(96)
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory, total = ctypes.c_uint64(), ctypes.c_size_t()
    identity = ctypes.create_string_buffer(16)
    call("cuInit", 0)
    call("cuDeviceGetCount", ctypes.byref(gpus))
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDeviceGetName", model, len(model), device)
    call("cuDeviceGetUuid_v2", identity, device)
    call("cuDeviceTotalMem_v2", ctypes.byref(total), device)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(given.memory_mib << 20))
    nanoseconds = given.kernel_us * 1000
    call("cuModuleLoadData", ctypes.byref(module), KERNEL.format(ns=nanoseconds).encode())
    call("cuModuleGetFunction", ctypes.byref(kernel), module, f"ns_{nanoseconds}".encode())
    launched = reported_kernels = 0
    began = reported = time.monotonic()

    def report() -> None:
        nonlocal reported, reported_kernels
        now = time.monotonic()
        busy = (launched - reported_kernels) * given.kernel_us / 1e6
        line = {
            "gpus": gpus.value,
            "model": model.value.decode(),
            "uuid": f"GPU-{uuid.UUID(bytes=identity.raw)}",
            "total_mib": total.value >> 20,
            "memory_mib": given.memory_mib,
            "kernels": launched,
            "seconds": round(now - began, 3),
            "time": round(time.time(), 3),
            # Of the GPU's time, since the line before.
            "percent": round(100 * busy / max(now - reported, 1e-6), 1),
        }
        print(json.dumps(line), flush=True)
        reported, reported_kernels = now, launched

    while not launched or time.monotonic() - began < given.seconds:
        call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
        launched += 1
        if launched % 16 == 0:
            call("cuCtxSynchronize")
        if given.every and time.monotonic() - reported >= given.every:
            report()
    call("cuCtxSynchronize")
    report()


if __name__ == "__main__":
    main()

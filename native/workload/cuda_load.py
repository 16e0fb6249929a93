"""As cuda_load.c, in Python: takes memory of a GPU by the driver API and keeps it busy."""

import argparse
import ctypes
import json
import sys
import time

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
    """Runs it, and prints one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory-mib", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--kernel-us", type=int, default=1000)
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
    memory = ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGetCount", ctypes.byref(gpus))
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDeviceGetName", model, len(model), device)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(given.memory_mib << 20))
    nanoseconds = given.kernel_us * 1000
    call("cuModuleLoadData", ctypes.byref(module), KERNEL.format(ns=nanoseconds).encode())
    call("cuModuleGetFunction", ctypes.byref(kernel), module, f"ns_{nanoseconds}".encode())
    launched = 0
    began = time.monotonic()
    while not launched or time.monotonic() - began < given.seconds:
        call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
        launched += 1
        if launched % 16 == 0:
            call("cuCtxSynchronize")
    call("cuCtxSynchronize")
    report = {
        "gpus": gpus.value,
        "model": model.value.decode(),
        "memory_mib": given.memory_mib,
        "kernels": launched,
        "seconds": round(time.monotonic() - began, 3),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()

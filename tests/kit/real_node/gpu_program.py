"""The program of a container: says what it sees of GPUs, then uses them a little until its end.

    gpu_program SECONDS HOLD_MIB PAUSE

It is sent to the node as text. The image has `cuda_load.py`, and no compiled modules: so it imports
few.
"""

import ctypes
import json
import signal
import sys
import time

sys.path.insert(0, "/usr/local/bin")
#: CUDA_ERROR_OUT_OF_MEMORY.
_FULL = 2


def main() -> None:
    """Print one line of JSON, then work."""
    seconds, hold, pause = float(sys.argv[1]), int(sys.argv[2]) << 20, float(sys.argv[3])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    end = time.monotonic() + seconds
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        print(json.dumps({"gpus": {}}), flush=True)
        time.sleep(max(0.0, end - time.monotonic()))
        return
    from cuda_load import KERNEL  # of the image

    def call(name: str, *arguments: object, may_be: int = 0) -> int:
        result = int(getattr(cuda, name)(*arguments))
        if result not in (0, may_be):
            print(json.dumps({"failed": name, "result": result}), flush=True)
            sys.exit(1)
        return result

    count = ctypes.c_int()
    call("cuInit", 0)
    call("cuDeviceGetCount", ctypes.byref(count))
    seen, contexts = {}, []
    for ordinal in range(count.value):
        device, context, kernel = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        name = ctypes.create_string_buffer(16)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        memory, module = ctypes.c_uint64(), ctypes.c_void_p()
        call("cuDeviceGet", ctypes.byref(device), ordinal)
        call("cuDeviceGetUuid_v2", name, device)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxSetCurrent", context)
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(hold))
        more = ctypes.c_size_t(total.value)
        full = call("cuMemAlloc_v2", ctypes.byref(memory), more, may_be=_FULL)
        call("cuModuleLoadData", ctypes.byref(module), KERNEL.format(ns=500_000).encode())
        call("cuModuleGetFunction", ctypes.byref(kernel), module, b"ns_500000")
        call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
        call("cuCtxSynchronize")
        text = name.raw.hex()
        parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
        seen["GPU-" + "-".join(parts)] = {"mib": total.value / (1 << 20), "refused": full == _FULL}
        contexts.append((context, kernel))
    print(json.dumps({"gpus": seen}), flush=True)
    while time.monotonic() < end:
        for context, kernel in contexts:
            call("cuCtxSetCurrent", context)
            call("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
            call("cuCtxSynchronize")
        time.sleep(pause)


if __name__ == "__main__":
    main()

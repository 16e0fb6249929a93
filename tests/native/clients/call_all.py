"""Calls each driver function named on the command line with nothing but zeros, in a context."""

import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
ZEROS = [ctypes.c_void_p(0)] * 12
for name in sys.argv[1:]:
    print(name, getattr(cuda, name)(*ZEROS), flush=True)
print("done", flush=True)
sys.stdin.read()

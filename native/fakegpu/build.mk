# libfakegpu.so, libcuda.so.1 and libnvidia-ml.so.1: the fake GPU (tests only)
.PHONY: fakegpu
fakegpu: | $(OUT)

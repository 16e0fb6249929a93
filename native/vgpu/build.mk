# libalnair_vgpu.so
.PHONY: vgpu
vgpu: | $(OUT)

# libfakegpu.so, libcuda.so.1 and libnvidia-ml.so.1: the fake GPU (tests only).
# cuda-11080/ ... hold the same libcuda.so.1 with only the names that a driver of that version exports
# (FAKEGPU_CUDA says the same to cuGetProcAddress and cuDriverGetVersion).
FG := $(ROOT)/native/fakegpu
FG_OUT := $(OUT)/fakegpu
FG_GENERATED := $(FG_OUT)/generated
CUDA_INCLUDE ?= $(shell $(PYTHON) -c 'import nvidia.cu13, pathlib; print(pathlib.Path(list(nvidia.cu13.__path__)[0], "include"))')
FG_CUDAS := 11080 12040 13000 13050

# Shelves by library: libfakegpu.so has the state and what both drivers need of it; nvml is libnvidia-ml;
# all others are libcuda. README.md says what each holds.
FG_CORE := state simulation clock engine controls
FG_C := $(patsubst $(FG)/%.c,%,$(wildcard $(FG)/*/*.c))
FG_CORE_O := $(patsubst %,$(FG_OUT)/%.o,$(filter $(FG_CORE:=/%),$(FG_C)) generated/fg_symbols)
FG_NVML_O := $(patsubst %,$(FG_OUT)/%.o,$(filter nvml/%,$(FG_C)))
FG_NVML_H = $(CUDA_INCLUDE)/nvml.h
FG_CUDA_O := $(patsubst %,$(FG_OUT)/%.o,$(filter-out $(FG_CORE:=/%) nvml/%,$(FG_C)) generated/fg_entries)
FG_FLAGS := -I$(FG) -I$(FG_GENERATED) -isystem $(CUDA_INCLUDE) -Wno-deprecated-declarations

$(FG_OUT):
	@mkdir -p $@
# The generator writes only what changed, so that an edited model does not rebuild everything.
$(FG_OUT)/generated.stamp: $(ROOT)/native/tools/fake_entries.py $(wildcard $(FG)/*/*.c) | $(FG_OUT)
	$(PYTHON) $< --include $(CUDA_INCLUDE) --sources $(FG) --out $(FG_GENERATED) --compiler $(CC)
	@touch $@
$(FG_GENERATED)/fg_entries.c $(FG_GENERATED)/fg_symbols.c $(FG_GENERATED)/fg_symbols.h \
$(FG_GENERATED)/fg_declarations.h: $(FG_OUT)/generated.stamp ;
FG_H := $(wildcard $(FG)/*.h $(FG)/*/*.h) $(FG_GENERATED)/fg_declarations.h $(FG_GENERATED)/fg_symbols.h

$(FG_OUT)/%.o: $(FG)/%.c $(FG_H)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(FG_FLAGS) -c -o $@ $<
$(FG_GENERATED)/%.o: $(FG_GENERATED)/%.c $(FG_H)
	$(CC) $(CFLAGS) $(FG_FLAGS) -c -o $@ $<

FG_LINK = $(CC) $(CFLAGS) -shared -Wl,-z,defs -Wl,-soname,$(notdir $@) -o $@
$(OUT)/libfakegpu.so: $(FG_CORE_O) | $(OUT)
	$(FG_LINK) $^ -lpthread -ldl -lm
$(OUT)/libcuda.so.1: $(FG_CUDA_O) $(OUT)/libfakegpu.so
	$(FG_LINK) $(FG_CUDA_O) -Wl,-rpath,'$$ORIGIN' -L$(OUT) -lfakegpu -lpthread -ldl -lm
$(FG_GENERATED)/nvml_stubs.c: $(FG)/nvml/stubs.py $(FG_NVML_O)
	$(PYTHON) $< $(FG_NVML_H) $(FG_NVML_O) > $@.new && mv $@.new $@
$(OUT)/libnvidia-ml.so.1: $(FG_NVML_O) $(FG_GENERATED)/nvml_stubs.o $(OUT)/libfakegpu.so
	$(FG_LINK) $(FG_NVML_O) $(FG_GENERATED)/nvml_stubs.o -Wl,-rpath,'$$ORIGIN' -L$(OUT) -lfakegpu -lpthread -ldl -lm
$(OUT)/cuda-%/libcuda.so.1: $(FG_CUDA_O) $(OUT)/libfakegpu.so
	@mkdir -p $(@D)
	$(FG_LINK) $(FG_CUDA_O) -Wl,--version-script=$(FG_GENERATED)/cuda-$*.map -Wl,--undefined-version \
		-Wl,-rpath,'$$ORIGIN/..' -L$(OUT) -lfakegpu -lpthread -ldl -lm
$(OUT)/profiles: $(wildcard $(FG)/profiles/*) | $(OUT)
	@rm -rf $@ && cp -r $(FG)/profiles $@

.PHONY: fakegpu
fakegpu: $(OUT)/libfakegpu.so $(OUT)/libcuda.so.1 $(if $(FG_NVML_O),$(OUT)/libnvidia-ml.so.1) \
	$(FG_CUDAS:%=$(OUT)/cuda-%/libcuda.so.1) $(OUT)/profiles

# Loads and probes of tests/gpu as programs of their own, to try limits by hand: build/native/programs
$(OUT)/programs/%: $(ROOT)/tests/gpu/%.c $(ROOT)/tests/gpu/driver.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -isystem $(CUDA_INCLUDE) $< -o $@ -ldl -lm
.PHONY: programs
programs: $(OUT)/programs/load $(OUT)/programs/memory

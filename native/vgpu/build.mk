# libalnair_vgpu.so (LD_PRELOAD, /etc/ld.so.preload) and its test build with the virtual clock.
# All C files of its shelves belong to it (README.md); which hooks exist is read from the object files.
VGPU := $(ROOT)/native/vgpu
VGPU_TOOL := $(PYTHON) $(ROOT)/native/tools/vgpu_symbols.py
VGPU_GEN := $(OUT)/gen
VGPU_C := $(wildcard $(VGPU)/*/*.c)
VGPU_H := $(wildcard $(VGPU)/*.h $(VGPU)/*/*.h) $(VGPU_GEN)/symbols.h
# -Bsymbolic: the tables name our own hooks, whoever else exports such a name.
VGPU_LINK := -shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack \
	-Wl,--version-script=$(VGPU)/exports.map

# They run before a sanitizer has set itself up: see libc_functions.c.
VGPU_EARLY := $(addprefix driver/,libc_functions elf_symbols dlsym)
VGPU_FLAGS := $(CFLAGS) -D_GNU_SOURCE -I$(VGPU) -I$(VGPU_GEN)

$(VGPU_GEN)/symbols.h: $(VGPU)/symbols.tsv $(ROOT)/native/tools/vgpu_symbols.py | $(OUT)
	@mkdir -p $(VGPU_GEN)
	$(VGPU_TOOL) header $< $@

# $(1): folder of objects, $(2): the library, $(3): flags, $(4): further sources, made in that folder
define vgpu_library
$(OUT)/$(1)/%.o: $(VGPU)/%.c $(VGPU_H)
	@mkdir -p $$(@D)
	$(CC) $$(VGPU_FLAGS) $(3) -c $$< -o $$@
$(patsubst %,$(OUT)/$(1)/%.o,$(VGPU_EARLY)): VGPU_FLAGS := $(filter-out -fsanitize=%,$(VGPU_FLAGS))
$(OUT)/$(1)/symbols.c: $(patsubst $(VGPU)/%.c,$(OUT)/$(1)/%.o,$(VGPU_C)) $(VGPU)/symbols.tsv $(ROOT)/native/tools/vgpu_symbols.py
	$(VGPU_TOOL) table $(VGPU)/symbols.tsv $$@ $$(filter %.o,$$^)
$(OUT)/$(1)/trampolines.S: $(patsubst $(VGPU)/%.c,$(OUT)/$(1)/%.o,$(VGPU_C)) $(VGPU)/symbols.tsv $(ROOT)/native/tools/vgpu_symbols.py
	$(VGPU_TOOL) proxy $(VGPU)/symbols.tsv $$@ $$(filter %.o,$$^)
$(OUT)/$(2): $(OUT)/$(1)/symbols.c $(addprefix $(OUT)/$(1)/,$(4)) $(OUT)/stubs/libdl.so.2 $(VGPU)/exports.map
	@mkdir -p $$(@D)
	$(CC) $(VGPU_FLAGS) $(3) $(VGPU_LINK) $(LDFLAGS) -Wl,-soname,$(notdir $(2)) $$(filter %.c %.S,$$^) \
		$(patsubst $(VGPU)/%.c,$(OUT)/$(1)/%.o,$(VGPU_C)) -Wl,--no-as-needed $(OUT)/stubs/libdl.so.2 -o $$@
endef
$(eval $(call vgpu_library,vgpu,libalnair_vgpu.so,,))
$(eval $(call vgpu_library,vgpu-virtual,libalnair_vgpu_virtual.so,-DVG_VIRTUAL_CLOCK,))
$(eval $(call vgpu_library,vgpu-proxy,proxy/libcuda.so.1,-DVG_PROXY,trampolines.S))

# Before glibc 2.34 dlopen and dlsym are in libdl.so.2, which must then be loaded; we look them up by
# hand (driver/elf_symbols.c), so no version of a symbol is asked for. An empty library of that name to link with.
$(OUT)/stubs/libdl.so.2:
	@mkdir -p $(@D)
	$(CC) -shared -nostdlib -Wl,-soname,libdl.so.2 -x c /dev/null -o $@

.PHONY: vgpu
vgpu: $(OUT)/libalnair_vgpu.so $(OUT)/libalnair_vgpu_virtual.so $(OUT)/proxy/libcuda.so.1
.PHONY: released
released: $(OUT)/libalnair_vgpu.so $(OUT)/proxy/libcuda.so.1

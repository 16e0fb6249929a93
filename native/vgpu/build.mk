# libalnair_vgpu.so (LD_PRELOAD, /etc/ld.so.preload) and its test build with the virtual clock.
# All C files of this folder belong to it; which hooks exist is read from the object files.
VGPU := $(ROOT)/native/vgpu
VGPU_TOOL := $(PYTHON) $(ROOT)/native/tools/vgpu_symbols.py
VGPU_GEN := $(OUT)/gen
VGPU_C := $(wildcard $(VGPU)/*.c)
VGPU_H := $(wildcard $(VGPU)/*.h) $(VGPU_GEN)/symbols.h
# -Bsymbolic: the tables name our own hooks, whoever else exports such a name.
VGPU_LINK := -shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack \
	-Wl,--version-script=$(VGPU)/exports.map

$(VGPU_GEN)/symbols.h: $(VGPU)/symbols.tsv $(ROOT)/native/tools/vgpu_symbols.py | $(OUT)
	@mkdir -p $(VGPU_GEN)
	$(VGPU_TOOL) header $< $@

# $(1): folder of objects, $(2): the library, $(3): flags
define vgpu_library
$(OUT)/$(1)/%.o: $(VGPU)/%.c $(VGPU_H)
	@mkdir -p $$(@D)
	$(CC) $(CFLAGS) -D_GNU_SOURCE $(3) -I$(VGPU) -I$(VGPU_GEN) -c $$< -o $$@
$(OUT)/$(1)/symbols.c: $(patsubst $(VGPU)/%.c,$(OUT)/$(1)/%.o,$(VGPU_C)) $(VGPU)/symbols.tsv $(ROOT)/native/tools/vgpu_symbols.py
	$(VGPU_TOOL) table $(VGPU)/symbols.tsv $$@ $$(filter %.o,$$^)
$(OUT)/$(2): $(OUT)/$(1)/symbols.c $(VGPU)/exports.map
	$(CC) $(CFLAGS) -D_GNU_SOURCE $(3) -I$(VGPU) -I$(VGPU_GEN) $(VGPU_LINK) $$< $(patsubst $(VGPU)/%.c,$(OUT)/$(1)/%.o,$(VGPU_C)) -o $$@
endef
$(eval $(call vgpu_library,vgpu,libalnair_vgpu.so,))
$(eval $(call vgpu_library,vgpu-virtual,libalnair_vgpu_virtual.so,-DVG_VIRTUAL_CLOCK))

.PHONY: vgpu
vgpu: $(OUT)/libalnair_vgpu.so $(OUT)/libalnair_vgpu_virtual.so

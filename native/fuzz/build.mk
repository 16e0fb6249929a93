# Fuzzers of what reads bytes that others wrote (make -C native fuzz, make test-native). The library is
# compiled once more, with ASan, UBSan and a mark for each block of code reached, and linked in.
# Its dlsym gets another name there: the sanitizer's runtime would call it before it is ready itself.
# Where clang is the compiler, libFuzzer takes the same targets: their entry is LLVMFuzzerTestOneInput.
FZ := $(ROOT)/native/fuzz
FZ_OUT := $(ROOT)/build/native-fuzz
FZ_TARGETS := $(filter-out driver world,$(notdir $(basename $(wildcard $(FZ)/*.c))))
FZ_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FZ_FLAGS := -std=gnu11 -O1 -g -D_GNU_SOURCE -Wall -Wextra $(FZ_SANITIZE) -I$(VGPU) -I$(VGPU_GEN)
FZ_O := $(patsubst $(VGPU)/%.c,$(FZ_OUT)/vgpu/%.o,$(VGPU_C))

$(FZ_OUT)/vgpu/%.o: $(VGPU)/%.c $(VGPU_H)
	@mkdir -p $(@D)
	$(CC) $(FZ_FLAGS) -fsanitize-coverage=trace-pc -c $< -o $@
	objcopy --redefine-sym dlsym=fuzz_dlsym --redefine-sym dlvsym=fuzz_dlvsym $@
$(FZ_OUT)/vgpu/symbols.c: $(FZ_O) $(VGPU)/symbols.tsv
	$(VGPU_TOOL) table $(VGPU)/symbols.tsv $@ $(FZ_O)
$(FZ_OUT)/driver.o: $(FZ)/driver.c
	@mkdir -p $(@D)
	$(CC) $(filter-out $(FZ_SANITIZE),$(FZ_FLAGS)) -c $< -o $@
$(FZ_OUT)/%.o: $(FZ)/%.c $(FZ)/world.h $(VGPU_H)
	@mkdir -p $(@D)
	$(CC) $(FZ_FLAGS) -c $< -o $@
$(FZ_OUT)/fuzz_%: $(FZ_OUT)/%.o $(FZ_OUT)/driver.o $(FZ_OUT)/world.o $(FZ_O) $(FZ_OUT)/vgpu/symbols.c
	$(CC) $(FZ_FLAGS) -rdynamic $^ -o $@ -Wl,-rpath,$(OUT) -ldl -lpthread -lm

.PHONY: fuzz
fuzz: vgpu fakegpu $(FZ_TARGETS:%=$(FZ_OUT)/fuzz_%)
.PRECIOUS: $(FZ_OUT)/%.o $(FZ_OUT)/vgpu/%.o $(FZ_OUT)/vgpu/symbols.c

# librecord.so, and our own libcudart.so.12: only to record what frameworks ask of the driver
# (tests/native/sequences/ORIGIN.md); no part of the library or of the tests.
# RECORD_INCLUDE: folders of cuda_runtime_api.h (12.x) and crt/host_defines.h, separated by colons.
RC := $(ROOT)/native/record
colon := :
$(OUT)/record:
	@mkdir -p $@
$(OUT)/record/librecord.so: $(RC)/record.c $(RC)/calls.h | $(OUT)/record
	$(CC) $(CFLAGS) -shared $< -o $@ -ldl
$(OUT)/record/libcudart.so.12: $(RC)/cudart.c $(RC)/cudart.map | $(OUT)/record
	$(CC) $(CFLAGS) $(addprefix -isystem ,$(subst $(colon), ,$(RECORD_INCLUDE))) -shared -Wl,-soname,$(@F) \
		-Wl,--version-script=$(RC)/cudart.map $< -o $@ -ldl

.PHONY: record
record: $(OUT)/record/librecord.so $(OUT)/record/libcudart.so.12

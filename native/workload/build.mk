# Programs of the images of a real node (alnair up --real-node): build/native/workload
WORKLOAD := $(OUT)/workload
WORKLOAD_FLAGS := -std=gnu11 -O2 -Wall -Wextra -Werror
$(WORKLOAD):
	@mkdir -p $@
$(WORKLOAD)/pause: $(ROOT)/native/workload/pause.c | $(WORKLOAD)
	$(CC) $(WORKLOAD_FLAGS) -static $< -o $@
$(WORKLOAD)/cuda_load: $(ROOT)/native/workload/cuda_load.c | $(WORKLOAD)
	$(CC) $(WORKLOAD_FLAGS) -isystem $(CUDA_INCLUDE) $< -o $@ -ldl

.PHONY: workload
workload: $(WORKLOAD)/pause $(WORKLOAD)/cuda_load

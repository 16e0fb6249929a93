/* What a container is shown of its GPUs. */
#ifndef ALNAIR_VGPU_VIEWS_H
#define ALNAIR_VGPU_VIEWS_H

#include "vgpu.h"

/* The container's memory as it shall see it; false: no limit, the GPU's own figures. */
bool vg_memory_view(int row, uint64_t *total, uint64_t *used);

/* ---- nvml_device.c --------------------------------------------------------------------------- */
/* Declared ourselves, as in cuda_abi.h: facts of the interface, members named by us. */
typedef struct nvmlDevice_st *nvmlDevice_t;
enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_INSUFFICIENT_SIZE = 7
};
/* The row of this device; -1: none, or no container. */
int vg_nvml_row(nvmlDevice_t device);

#endif

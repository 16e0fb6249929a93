/* One copy, whichever function of the driver asks for it. */
#ifndef FG_COPY_H
#define FG_COPY_H
#include "driver/driver.h"

CUresult fg_copy(const CUDA_MEMCPY3D *shape, CUstream stream, bool async);
CUresult fg_copy_flat(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from,
                      size_t bytes, CUstream stream, bool async);
#define HOST CU_MEMORYTYPE_HOST
#define DEVICE CU_MEMORYTYPE_DEVICE
#define ARRAY CU_MEMORYTYPE_ARRAY
#define ANY CU_MEMORYTYPE_UNIFIED
#define AT(pointer) ((uint64_t)(uintptr_t)(pointer))
#endif

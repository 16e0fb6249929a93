/* Hooks of memsets: counted with their bytes, and charged as work of the GPU. */
#include "counting/counted_hooks.h"

#define AREA(w, h) ((uint64_t)(w) * (h))

/* They return before the GPU is done, also where they take no stream. */
#define FILLING(name, bytes, parameters, arguments)                                                \
    WORKED(name, VG_CALL_MEMSET, true, bytes, NULL, parameters, arguments)                         \
    WORKED(name##_ptds, VG_CALL_MEMSET, true, bytes, CU_STREAM_PER_THREAD, parameters, arguments)

FILLING(cuMemsetD8_v2, n, (CUdeviceptr to, unsigned char value, size_t n), (to, value, n))
WORKED(cuMemsetD8, VG_CALL_MEMSET, true, (uint64_t)n, NULL,
       (CUdeviceptr_v1 to, unsigned char value, unsigned int n), (to, value, n))
WORK_STREAMED(cuMemsetD8Async, VG_CALL_MEMSET, true, n,
              (CUdeviceptr to, unsigned char value, size_t n, CUstream s), (to, value, n, s))
FILLING(cuMemsetD2D8_v2, AREA(w, h),
        (CUdeviceptr to, size_t pitch, unsigned char value, size_t w, size_t h),
        (to, pitch, value, w, h))
WORKED(cuMemsetD2D8, VG_CALL_MEMSET, true, AREA(w, h), NULL,
       (CUdeviceptr_v1 to, unsigned int pitch, unsigned char value, unsigned int w, unsigned int h),
       (to, pitch, value, w, h))
WORK_STREAMED(cuMemsetD2D8Async, VG_CALL_MEMSET, true, AREA(w, h),
              (CUdeviceptr to, size_t pitch, unsigned char value, size_t w, size_t h, CUstream s),
              (to, pitch, value, w, h, s))
FILLING(cuMemsetD16_v2, 2 * n, (CUdeviceptr to, unsigned short value, size_t n), (to, value, n))
WORKED(cuMemsetD16, VG_CALL_MEMSET, true, 2 * (uint64_t)n, NULL,
       (CUdeviceptr_v1 to, unsigned short value, unsigned int n), (to, value, n))
WORK_STREAMED(cuMemsetD16Async, VG_CALL_MEMSET, true, 2 * n,
              (CUdeviceptr to, unsigned short value, size_t n, CUstream s), (to, value, n, s))
FILLING(cuMemsetD2D16_v2, 2 * AREA(w, h),
        (CUdeviceptr to, size_t pitch, unsigned short value, size_t w, size_t h),
        (to, pitch, value, w, h))
WORKED(cuMemsetD2D16, VG_CALL_MEMSET, true, 2 * AREA(w, h), NULL,
       (CUdeviceptr_v1 to, unsigned int pitch, unsigned short value, unsigned int w,
        unsigned int h),
       (to, pitch, value, w, h))
WORK_STREAMED(cuMemsetD2D16Async, VG_CALL_MEMSET, true, 2 * AREA(w, h),
              (CUdeviceptr to, size_t pitch, unsigned short value, size_t w, size_t h, CUstream s),
              (to, pitch, value, w, h, s))
FILLING(cuMemsetD32_v2, 4 * n, (CUdeviceptr to, unsigned int value, size_t n), (to, value, n))
WORKED(cuMemsetD32, VG_CALL_MEMSET, true, 4 * (uint64_t)n, NULL,
       (CUdeviceptr_v1 to, unsigned int value, unsigned int n), (to, value, n))
WORK_STREAMED(cuMemsetD32Async, VG_CALL_MEMSET, true, 4 * n,
              (CUdeviceptr to, unsigned int value, size_t n, CUstream s), (to, value, n, s))
FILLING(cuMemsetD2D32_v2, 4 * AREA(w, h),
        (CUdeviceptr to, size_t pitch, unsigned int value, size_t w, size_t h),
        (to, pitch, value, w, h))
WORKED(cuMemsetD2D32, VG_CALL_MEMSET, true, 4 * AREA(w, h), NULL,
       (CUdeviceptr_v1 to, unsigned int pitch, unsigned int value, unsigned int w, unsigned int h),
       (to, pitch, value, w, h))
WORK_STREAMED(cuMemsetD2D32Async, VG_CALL_MEMSET, true, 4 * AREA(w, h),
              (CUdeviceptr to, size_t pitch, unsigned int value, size_t w, size_t h, CUstream s),
              (to, pitch, value, w, h, s))

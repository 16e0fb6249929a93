/* Hooks of copies: counted by class with their bytes, never made to wait.
 *
 * A class is a direction. Calls that find the direction out themselves (cuMemcpy, batches) count as
 * OTHER; what a batch of 3D copies moves is not added up. */
#include "counting/counted_hooks.h"

static enum vg_class direction(CUmemorytype from, CUmemorytype to)
{
    if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED)
        return VG_CALL_OTHER;
    if (from == CU_MEMORYTYPE_HOST)
        return to == CU_MEMORYTYPE_HOST ? VG_CALL_OTHER : VG_CALL_H2D;
    return to == CU_MEMORYTYPE_HOST ? VG_CALL_D2H : VG_CALL_D2D;
}

static uint64_t sum(const size_t *sizes, size_t n)
{
    uint64_t bytes = 0;
    while (sizes && n--)
        bytes += sizes[n];
    return bytes;
}

/* Of a copy that the driver accepted, or refused for being NULL. */
#define DIRECTION (copy ? direction(copy->src_type, copy->dst_type) : VG_CALL_OTHER)
#define AREA ((uint64_t)copy->width * copy->height)
#define VOLUME ((uint64_t)copy->width * copy->height * copy->depth)

/* name, class, bytes, parameters, arguments */
BLOCKING(cuMemcpy, VG_CALL_OTHER, n, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
STREAMED(cuMemcpyAsync, VG_CALL_OTHER, n, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s),
         (to, from, n, s))
BLOCKING(cuMemcpyPeer, VG_CALL_PEER, n,
         (CUdeviceptr to, CUcontext tc, CUdeviceptr from, CUcontext fc, size_t n),
         (to, tc, from, fc, n))
STREAMED(cuMemcpyPeerAsync, VG_CALL_PEER, n,
         (CUdeviceptr to, CUcontext tc, CUdeviceptr from, CUcontext fc, size_t n, CUstream s),
         (to, tc, from, fc, n, s))

BLOCKING(cuMemcpyHtoD_v2, VG_CALL_H2D, n, (CUdeviceptr to, const void *from, size_t n),
         (to, from, n))
COUNTED_WAIT(cuMemcpyHtoD, VG_CALL_H2D, n, (CUdeviceptr_v1 to, const void *from, unsigned int n),
             (to, from, n))
BLOCKING(cuMemcpyDtoH_v2, VG_CALL_D2H, n, (void *to, CUdeviceptr from, size_t n), (to, from, n))
COUNTED_WAIT(cuMemcpyDtoH, VG_CALL_D2H, n, (void *to, CUdeviceptr_v1 from, unsigned int n),
             (to, from, n))
BLOCKING(cuMemcpyDtoD_v2, VG_CALL_D2D, n, (CUdeviceptr to, CUdeviceptr from, size_t n),
         (to, from, n))
COUNTED_WAIT(cuMemcpyDtoD, VG_CALL_D2D, n, (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int n),
             (to, from, n))
BLOCKING(cuMemcpyHtoA_v2, VG_CALL_H2D, n, (CUarray to, size_t at, const void *from, size_t n),
         (to, at, from, n))
COUNTED_WAIT(cuMemcpyHtoA, VG_CALL_H2D, n,
             (CUarray to, unsigned int at, const void *from, unsigned int n), (to, at, from, n))
BLOCKING(cuMemcpyAtoH_v2, VG_CALL_D2H, n, (void *to, CUarray from, size_t at, size_t n),
         (to, from, at, n))
COUNTED_WAIT(cuMemcpyAtoH, VG_CALL_D2H, n,
             (void *to, CUarray from, unsigned int at, unsigned int n), (to, from, at, n))
STREAMED(cuMemcpyHtoDAsync_v2, VG_CALL_H2D, n,
         (CUdeviceptr to, const void *from, size_t n, CUstream s), (to, from, n, s))
COUNTED(cuMemcpyHtoDAsync, VG_CALL_H2D, n,
        (CUdeviceptr_v1 to, const void *from, unsigned int n, CUstream s), (to, from, n, s))
STREAMED(cuMemcpyDtoHAsync_v2, VG_CALL_D2H, n, (void *to, CUdeviceptr from, size_t n, CUstream s),
         (to, from, n, s))
COUNTED(cuMemcpyDtoHAsync, VG_CALL_D2H, n,
        (void *to, CUdeviceptr_v1 from, unsigned int n, CUstream s), (to, from, n, s))
STREAMED(cuMemcpyDtoDAsync_v2, VG_CALL_D2D, n,
         (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, s))
COUNTED(cuMemcpyDtoDAsync, VG_CALL_D2D, n,
        (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int n, CUstream s), (to, from, n, s))
STREAMED(cuMemcpyHtoAAsync_v2, VG_CALL_H2D, n,
         (CUarray to, size_t at, const void *from, size_t n, CUstream s), (to, at, from, n, s))
COUNTED(cuMemcpyHtoAAsync, VG_CALL_H2D, n,
        (CUarray to, unsigned int at, const void *from, unsigned int n, CUstream s),
        (to, at, from, n, s))
STREAMED(cuMemcpyAtoHAsync_v2, VG_CALL_D2H, n,
         (void *to, CUarray from, size_t at, size_t n, CUstream s), (to, from, at, n, s))
COUNTED(cuMemcpyAtoHAsync, VG_CALL_D2H, n,
        (void *to, CUarray from, unsigned int at, unsigned int n, CUstream s), (to, from, at, n, s))
BLOCKING(cuMemcpyDtoA_v2, VG_CALL_D2D, n, (CUarray to, size_t at, CUdeviceptr from, size_t n),
         (to, at, from, n))
COUNTED_WAIT(cuMemcpyDtoA, VG_CALL_D2D, n,
             (CUarray to, unsigned int at, CUdeviceptr_v1 from, unsigned int n), (to, at, from, n))
BLOCKING(cuMemcpyAtoD_v2, VG_CALL_D2D, n, (CUdeviceptr to, CUarray from, size_t at, size_t n),
         (to, from, at, n))
COUNTED_WAIT(cuMemcpyAtoD, VG_CALL_D2D, n,
             (CUdeviceptr_v1 to, CUarray from, unsigned int at, unsigned int n), (to, from, at, n))
BLOCKING(cuMemcpyAtoA_v2, VG_CALL_D2D, n,
         (CUarray to, size_t at, CUarray from, size_t from_at, size_t n),
         (to, at, from, from_at, n))
COUNTED_WAIT(cuMemcpyAtoA, VG_CALL_D2D, n,
             (CUarray to, unsigned int at, CUarray from, unsigned int from_at, unsigned int n),
             (to, at, from, from_at, n))

BLOCKING(cuMemcpy2D_v2, DIRECTION, AREA, (const CUDA_MEMCPY2D *copy), (copy))
COUNTED_WAIT(cuMemcpy2D, DIRECTION, AREA, (const CUDA_MEMCPY2D_v1 *copy), (copy))
BLOCKING(cuMemcpy2DUnaligned_v2, DIRECTION, AREA, (const CUDA_MEMCPY2D *copy), (copy))
COUNTED_WAIT(cuMemcpy2DUnaligned, DIRECTION, AREA, (const CUDA_MEMCPY2D_v1 *copy), (copy))
BLOCKING(cuMemcpy3D_v2, DIRECTION, VOLUME, (const CUDA_MEMCPY3D *copy), (copy))
COUNTED_WAIT(cuMemcpy3D, DIRECTION, VOLUME, (const CUDA_MEMCPY3D_v1 *copy), (copy))
STREAMED(cuMemcpy2DAsync_v2, DIRECTION, AREA, (const CUDA_MEMCPY2D *copy, CUstream s), (copy, s))
COUNTED(cuMemcpy2DAsync, DIRECTION, AREA, (const CUDA_MEMCPY2D_v1 *copy, CUstream s), (copy, s))
STREAMED(cuMemcpy3DAsync_v2, DIRECTION, VOLUME, (const CUDA_MEMCPY3D *copy, CUstream s), (copy, s))
COUNTED(cuMemcpy3DAsync, DIRECTION, VOLUME, (const CUDA_MEMCPY3D_v1 *copy, CUstream s), (copy, s))
BLOCKING(cuMemcpy3DPeer, VG_CALL_PEER, VOLUME, (const CUDA_MEMCPY3D_PEER *copy), (copy))
STREAMED(cuMemcpy3DPeerAsync, VG_CALL_PEER, VOLUME, (const CUDA_MEMCPY3D_PEER *copy, CUstream s),
         (copy, s))

STREAMED(cuMemcpyBatchAsync, VG_CALL_OTHER, sum(sizes, n),
         (CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n, CUmemcpyAttributes *as,
          size_t *at, size_t n_as, size_t *failed, CUstream s),
         (to, from, sizes, n, as, at, n_as, failed, s))
STREAMED(cuMemcpyBatchAsync_v2, VG_CALL_OTHER, sum(sizes, n),
         (CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n, CUmemcpyAttributes *as,
          size_t *at, size_t n_as, CUstream s),
         (to, from, sizes, n, as, at, n_as, s))
STREAMED(cuMemcpy3DBatchAsync, VG_CALL_OTHER, 0,
         (size_t n, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags,
          CUstream s),
         (n, list, failed, flags, s))
STREAMED(cuMemcpy3DBatchAsync_v2, VG_CALL_OTHER, 0,
         (size_t n, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream s),
         (n, list, flags, s))
STREAMED(cuMemcpyWithAttributesAsync, VG_CALL_OTHER, n,
         (CUdeviceptr to, CUdeviceptr from, size_t n, CUmemcpyAttributes *a, CUstream s),
         (to, from, n, a, s))
STREAMED(cuMemcpy3DWithAttributesAsync, VG_CALL_OTHER, 0,
         (CUDA_MEMCPY3D_BATCH_OP *copy, unsigned long long flags, CUstream s), (copy, flags, s))
STREAMED(cuMemBatchDecompressAsync, VG_CALL_OTHER, 0,
         (CUmemDecompressParams *list, size_t n, unsigned int flags, size_t *error, CUstream s),
         (list, n, flags, error, s))

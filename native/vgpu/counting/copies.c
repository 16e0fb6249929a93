/* Hooks of copies: counted by class with their bytes. Those within a GPU are charged as its work;
 * others are never made to wait.
 *
 * A class is a direction. Calls that find the direction out themselves (cuMemcpy, batches) count as
 * OTHER; what a batch of 3D copies moves is not added up. */
#include "counting/counted_hooks.h"

#define OPERAND_POINTER 1u /* CU_MEMCPY_OPERAND_TYPE_POINTER */

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

/* Whether the address is one of a GPU's memory, where the driver must find that out. */
static bool on_gpu(CUdeviceptr address)
{
    unsigned int type = 0;
    return REAL(cuPointerGetAttribute) &&
           REAL(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) ==
               CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE;
}

static bool within(CUmemorytype from_type, CUdeviceptr from, CUmemorytype to_type, CUdeviceptr to)
{
    if (from_type == CU_MEMORYTYPE_HOST || to_type == CU_MEMORYTYPE_HOST)
        return false;
    return (from_type != CU_MEMORYTYPE_UNIFIED || on_gpu(from)) &&
           (to_type != CU_MEMORYTYPE_UNIFIED || on_gpu(to));
}

static bool on_one_gpu(CUdeviceptr from, CUdeviceptr to)
{
    int first = -1, second = -2;
    return REAL(cuPointerGetAttribute) &&
           REAL(cuPointerGetAttribute)(&first, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, from) ==
               CUDA_SUCCESS &&
           REAL(cuPointerGetAttribute)(&second, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, to) ==
               CUDA_SUCCESS &&
           first == second;
}

static bool is_flat_within(const CUDA_MEMCPY3D_PEER *copy)
{
    return !copy->src_array && !copy->dst_array && on_one_gpu(copy->src_device, copy->dst_device);
}

/* What a batch moves within the GPU. */
static uint64_t sum_within(const CUdeviceptr *from, const CUdeviceptr *to, const size_t *sizes,
                           size_t n)
{
    uint64_t bytes = 0;
    while (from && to && sizes && n--)
        if (on_gpu(from[n]) && on_gpu(to[n]))
            bytes += sizes[n];
    return bytes;
}
#define BATCH(name, parameters, arguments)                                                         \
    WORKED_THEN(name, VG_CALL_OTHER, sum_within(from, to, sizes, n), sum(sizes, n), s, parameters, \
                arguments, (void)0)                                                                \
    WORKED_THEN(name##_ptsz, VG_CALL_OTHER, sum_within(from, to, sizes, n), sum(sizes, n),         \
                PER_THREAD(s), parameters, arguments, (void)0)

/* Of a copy that the driver accepted, or refused for being NULL. */
#define DIRECTION (copy ? direction(copy->src_type, copy->dst_type) : VG_CALL_OTHER)
static bool is_operand_within(const CUmemcpy3DOperand *operand)
{
    return operand->type != OPERAND_POINTER || on_gpu(operand->op.ptr.ptr);
}

/* What 3D copies move within a GPU, in elements. */
static uint64_t boxes(const CUDA_MEMCPY3D_BATCH_OP *list, size_t n)
{
    uint64_t sum = 0;
    for (; list && n; list++, n--)
        if (is_operand_within(&list->src) && is_operand_within(&list->dst))
            sum += (uint64_t)list->extent.width * list->extent.height * list->extent.depth;
    return sum;
}
#define BOXES(name, size, parameters, arguments)                                                   \
    WORKED_THEN(name, VG_CALL_OTHER, size, 0, s, parameters, arguments, (void)0)                   \
    WORKED_THEN(name##_ptsz, VG_CALL_OTHER, size, 0, PER_THREAD(s), parameters, arguments, (void)0)

#define WITHIN (copy && within(copy->src_type, copy->src_device, copy->dst_type, copy->dst_device))
#define WITHIN_PEER (WITHIN && (copy->src_context == copy->dst_context || is_flat_within(copy)))
#define AREA ((uint64_t)copy->width * copy->height)
#define VOLUME ((uint64_t)copy->width * copy->height * copy->depth)

/* name, class, bytes, parameters, arguments */
WORK_BLOCKING(cuMemcpy, VG_CALL_OTHER, on_gpu(from) && on_gpu(to), n,
              (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n))
WORK_STREAMED(cuMemcpyAsync, VG_CALL_OTHER, on_gpu(from) && on_gpu(to), n,
              (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, s))
WORK_BLOCKING(cuMemcpyPeer, VG_CALL_PEER, on_one_gpu(from, to), n,
              (CUdeviceptr to, CUcontext tc, CUdeviceptr from, CUcontext fc, size_t n),
              (to, tc, from, fc, n))
WORK_STREAMED(cuMemcpyPeerAsync, VG_CALL_PEER, on_one_gpu(from, to), n,
              (CUdeviceptr to, CUcontext tc, CUdeviceptr from, CUcontext fc, size_t n, CUstream s),
              (to, tc, from, fc, n, s))

BLOCKING(cuMemcpyHtoD_v2, VG_CALL_H2D, n, (CUdeviceptr to, const void *from, size_t n),
         (to, from, n))
COUNTED_WAIT(cuMemcpyHtoD, VG_CALL_H2D, n, (CUdeviceptr_v1 to, const void *from, unsigned int n),
             (to, from, n))
BLOCKING(cuMemcpyDtoH_v2, VG_CALL_D2H, n, (void *to, CUdeviceptr from, size_t n), (to, from, n))
COUNTED_WAIT(cuMemcpyDtoH, VG_CALL_D2H, n, (void *to, CUdeviceptr_v1 from, unsigned int n),
             (to, from, n))
WORK_BLOCKING(cuMemcpyDtoD_v2, VG_CALL_D2D, true, n, (CUdeviceptr to, CUdeviceptr from, size_t n),
              (to, from, n))
WORKED_WAIT(cuMemcpyDtoD, VG_CALL_D2D, true, n, NULL,
            (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int n), (to, from, n))
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
WORK_STREAMED(cuMemcpyDtoDAsync_v2, VG_CALL_D2D, true, n,
              (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (to, from, n, s))
WORKED(cuMemcpyDtoDAsync, VG_CALL_D2D, true, n, s,
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
WORK_BLOCKING(cuMemcpyDtoA_v2, VG_CALL_D2D, true, n,
              (CUarray to, size_t at, CUdeviceptr from, size_t n), (to, at, from, n))
WORKED_WAIT(cuMemcpyDtoA, VG_CALL_D2D, true, n, NULL,
            (CUarray to, unsigned int at, CUdeviceptr_v1 from, unsigned int n), (to, at, from, n))
WORK_BLOCKING(cuMemcpyAtoD_v2, VG_CALL_D2D, true, n,
              (CUdeviceptr to, CUarray from, size_t at, size_t n), (to, from, at, n))
WORKED_WAIT(cuMemcpyAtoD, VG_CALL_D2D, true, n, NULL,
            (CUdeviceptr_v1 to, CUarray from, unsigned int at, unsigned int n), (to, from, at, n))
WORK_BLOCKING(cuMemcpyAtoA_v2, VG_CALL_D2D, true, n,
              (CUarray to, size_t at, CUarray from, size_t from_at, size_t n),
              (to, at, from, from_at, n))
WORKED_WAIT(cuMemcpyAtoA, VG_CALL_D2D, true, n, NULL,
            (CUarray to, unsigned int at, CUarray from, unsigned int from_at, unsigned int n),
            (to, at, from, from_at, n))

WORK_BLOCKING(cuMemcpy2D_v2, DIRECTION, WITHIN, AREA, (const CUDA_MEMCPY2D *copy), (copy))
WORKED_WAIT(cuMemcpy2D, DIRECTION, WITHIN, AREA, NULL, (const CUDA_MEMCPY2D_v1 *copy), (copy))
WORK_BLOCKING(cuMemcpy2DUnaligned_v2, DIRECTION, WITHIN, AREA, (const CUDA_MEMCPY2D *copy), (copy))
WORKED_WAIT(cuMemcpy2DUnaligned, DIRECTION, WITHIN, AREA, NULL, (const CUDA_MEMCPY2D_v1 *copy),
            (copy))
WORK_BLOCKING(cuMemcpy3D_v2, DIRECTION, WITHIN, VOLUME, (const CUDA_MEMCPY3D *copy), (copy))
WORKED_WAIT(cuMemcpy3D, DIRECTION, WITHIN, VOLUME, NULL, (const CUDA_MEMCPY3D_v1 *copy), (copy))
WORK_STREAMED(cuMemcpy2DAsync_v2, DIRECTION, WITHIN, AREA, (const CUDA_MEMCPY2D *copy, CUstream s),
              (copy, s))
WORKED(cuMemcpy2DAsync, DIRECTION, WITHIN, AREA, s, (const CUDA_MEMCPY2D_v1 *copy, CUstream s),
       (copy, s))
WORK_STREAMED(cuMemcpy3DAsync_v2, DIRECTION, WITHIN, VOLUME,
              (const CUDA_MEMCPY3D *copy, CUstream s), (copy, s))
WORKED(cuMemcpy3DAsync, DIRECTION, WITHIN, VOLUME, s, (const CUDA_MEMCPY3D_v1 *copy, CUstream s),
       (copy, s))
WORK_BLOCKING(cuMemcpy3DPeer, VG_CALL_PEER, WITHIN_PEER, VOLUME, (const CUDA_MEMCPY3D_PEER *copy),
              (copy))
WORK_STREAMED(cuMemcpy3DPeerAsync, VG_CALL_PEER, WITHIN_PEER, VOLUME,
              (const CUDA_MEMCPY3D_PEER *copy, CUstream s), (copy, s))

BATCH(cuMemcpyBatchAsync,
      (CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n, CUmemcpyAttributes *as,
       size_t *at, size_t n_as, size_t *failed, CUstream s),
      (to, from, sizes, n, as, at, n_as, failed, s))
BATCH(cuMemcpyBatchAsync_v2,
      (CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t n, CUmemcpyAttributes *as,
       size_t *at, size_t n_as, CUstream s),
      (to, from, sizes, n, as, at, n_as, s))
BOXES(cuMemcpy3DBatchAsync, boxes(list, n),
      (size_t n, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags,
       CUstream s),
      (n, list, failed, flags, s))
BOXES(cuMemcpy3DBatchAsync_v2, boxes(list, n),
      (size_t n, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream s),
      (n, list, flags, s))
WORK_STREAMED(cuMemcpyWithAttributesAsync, VG_CALL_OTHER, on_gpu(from) && on_gpu(to), n,
              (CUdeviceptr to, CUdeviceptr from, size_t n, CUmemcpyAttributes *a, CUstream s),
              (to, from, n, a, s))
BOXES(cuMemcpy3DWithAttributesAsync, boxes(copy, 1),
      (CUDA_MEMCPY3D_BATCH_OP *copy, unsigned long long flags, CUstream s), (copy, flags, s))
STREAMED(cuMemBatchDecompressAsync, VG_CALL_OTHER, 0,
         (CUmemDecompressParams *list, size_t n, unsigned int flags, size_t *error, CUstream s),
         (list, n, flags, error, s))

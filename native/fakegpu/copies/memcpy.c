/* Copies of so many bytes in a row. */
#include "copies/copy.h"
#include "driver/current_context.h"

/* Each with its present types (_v2) and with those of CUDA 3.1. */
CUresult FG(cuMemcpyHtoD_v2)(CUdeviceptr to, const void *from, size_t n)
{
    return fg_copy_flat(DEVICE, to, HOST, AT(from), n, NULL, false);
}
CUresult FG(cuMemcpyHtoD)(CUdeviceptr_v1 to, const void *from, unsigned int n)
{
    return fg_copy_flat(DEVICE, to, HOST, AT(from), n, NULL, false);
}
CUresult FG(cuMemcpyDtoH_v2)(void *to, CUdeviceptr from, size_t n)
{
    return fg_copy_flat(HOST, AT(to), DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyDtoH)(void *to, CUdeviceptr_v1 from, unsigned int n)
{
    return fg_copy_flat(HOST, AT(to), DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyDtoD_v2)(CUdeviceptr to, CUdeviceptr from, size_t n)
{
    return fg_copy_flat(DEVICE, to, DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyDtoD)(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int n)
{
    return fg_copy_flat(DEVICE, to, DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyHtoDAsync_v2)(CUdeviceptr to, const void *from, size_t n, CUstream s)
{
    return fg_copy_flat(DEVICE, to, HOST, AT(from), n, s, true);
}
CUresult FG(cuMemcpyHtoDAsync)(CUdeviceptr_v1 to, const void *from, unsigned int n, CUstream s)
{
    return fg_copy_flat(DEVICE, to, HOST, AT(from), n, s, true);
}
CUresult FG(cuMemcpyDtoHAsync_v2)(void *to, CUdeviceptr from, size_t n, CUstream s)
{
    return fg_copy_flat(HOST, AT(to), DEVICE, from, n, s, true);
}
CUresult FG(cuMemcpyDtoHAsync)(void *to, CUdeviceptr_v1 from, unsigned int n, CUstream s)
{
    return fg_copy_flat(HOST, AT(to), DEVICE, from, n, s, true);
}
CUresult FG(cuMemcpyDtoDAsync_v2)(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    return fg_copy_flat(DEVICE, to, DEVICE, from, n, s, true);
}
CUresult FG(cuMemcpyDtoDAsync)(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int n, CUstream s)
{
    return fg_copy_flat(DEVICE, to, DEVICE, from, n, s, true);
}
CUresult FG(cuMemcpy)(CUdeviceptr to, CUdeviceptr from, size_t n)
{
    return fg_copy_flat(ANY, to, ANY, from, n, NULL, false);
}
CUresult FG(cuMemcpyAsync)(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s)
{
    return fg_copy_flat(ANY, to, ANY, from, n, s, true);
}
CUresult FG(cuMemcpyPeer)(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                          CUcontext from_context, size_t n)
{
    if (!fg_context_of(to_context) || !fg_context_of(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return fg_copy_flat(DEVICE, to, DEVICE, from, n, NULL, false);
}
CUresult FG(cuMemcpyPeerAsync)(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                               CUcontext from_context, size_t n, CUstream s)
{
    if (!fg_context_of(to_context) || !fg_context_of(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return fg_copy_flat(DEVICE, to, DEVICE, from, n, s, true);
}
CUresult FG(cuMemcpyBatchAsync_v2)(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                                   CUmemcpyAttributes *attributes, size_t *indices, size_t n,
                                   CUstream s)
{
    if (!to || !from || !sizes || !count || !attributes || !indices || !n || !s)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < count && !result; i++)
        result = fg_copy_flat(ANY, to[i], ANY, from[i], sizes[i], s, true);
    return result;
}
CUresult FG(cuMemcpyBatchAsync)(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                                CUmemcpyAttributes *attributes, size_t *indices, size_t n,
                                size_t *fail, CUstream s)
{
    CUresult result = FG(cuMemcpyBatchAsync_v2)(to, from, sizes, count, attributes, indices, n, s);
    if (result && fail)
        *fail = SIZE_MAX;
    return result;
}
CUresult FG(cuMemcpyWithAttributesAsync)(CUdeviceptr to, CUdeviceptr from, size_t n,
                                         CUmemcpyAttributes *attributes, CUstream s)
{
    return attributes ? fg_copy_flat(ANY, to, ANY, from, n, s, true) : CUDA_ERROR_INVALID_VALUE;
}

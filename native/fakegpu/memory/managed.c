/* Advice about managed memory, which is resident on its GPU in full, whatever one advises. */
#include "memory/ranges.h"

static CUresult advise(uint64_t address, uint64_t bytes)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    bool managed =
        range && range->kind == FG_MANAGED && bytes && address + bytes <= range->base + range->size;
    pthread_mutex_unlock(&fg_mutex);
    return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemAdvise)(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
    (void)advice, (void)device;
    return advise(address, bytes);
}

CUresult FG(cuMemAdvise_v2)(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                            CUmemLocation location)
{
    (void)advice, (void)location;
    return advise(address, bytes);
}

CUresult FG(cuMemPrefetchAsync)(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
    (void)device, (void)stream;
    return advise(address, bytes);
}

CUresult FG(cuMemPrefetchAsync_v2)(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                   unsigned int flags, CUstream stream)
{
    (void)location, (void)flags, (void)stream;
    return advise(address, bytes);
}

/* Advice about managed memory. It is resident on its GPU in full, whatever one advises; what was
 * allocated for the host (CU_MEM_ATTACH_HOST) lies there, until a GPU is named as its place or it is
 * fetched to one, and then goes there at once. */
#include "memory/heap.h"

static CUresult advise(uint64_t address, uint64_t bytes, bool to_gpu)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    bool managed =
        range && range->kind == FG_MANAGED && bytes && address + bytes <= range->base + range->size;
    if (managed && to_gpu)
        fg_managed_to_gpu(range);
    pthread_mutex_unlock(&fg_mutex);
    return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemAdvise)(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
    return advise(address, bytes,
                  advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION && device != CU_DEVICE_CPU);
}

CUresult FG(cuMemAdvise_v2)(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                            CUmemLocation location)
{
    return advise(address, bytes,
                  advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION &&
                      location.type == CU_MEM_LOCATION_TYPE_DEVICE);
}

CUresult FG(cuMemPrefetchAsync)(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
    (void)stream;
    return advise(address, bytes, device != CU_DEVICE_CPU);
}

CUresult FG(cuMemPrefetchAsync_v2)(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                   unsigned int flags, CUstream stream)
{
    (void)flags, (void)stream;
    return advise(address, bytes, location.type == CU_MEM_LOCATION_TYPE_DEVICE);
}

CUresult FG(cuMemPrefetchBatchAsync)(CUdeviceptr *address, size_t *bytes, size_t count,
                                     CUmemLocation *location, size_t *first, size_t locations,
                                     unsigned long long flags, CUstream stream)
{
    (void)flags, (void)stream;
    CUresult result = address && bytes && location && first && locations && count
                          ? CUDA_SUCCESS
                          : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0, at = 0; result == CUDA_SUCCESS && i < count; i++) {
        while (at + 1 < locations && first[at + 1] <= i)
            at++;
        result = advise(address[i], bytes[i], location[at].type == CU_MEM_LOCATION_TYPE_DEVICE);
    }
    return result;
}

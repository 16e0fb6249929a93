/* Pools made, destroyed, trimmed, and what they say of themselves. */
#include <string.h>

#include "clock/clock.h"
#include "pools/pool.h"

CUresult FG(cuMemPoolCreate)(CUmemoryPool *out, const CUmemPoolProps *properties)
{
    if (!out || !properties ||
        (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED &&
         properties->allocType != CU_MEM_ALLOCATION_TYPE_MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)properties->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    int gpu = -1;
    if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        gpu = fg_gpu_of_device(properties->location.id);
        if (gpu < 0)
            return CUDA_ERROR_INVALID_DEVICE;
    }
    pthread_mutex_lock(&fg_mutex);
    *out = (CUmemoryPool)fg_pool_new(gpu, properties);
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

CUresult FG(cuMemPoolDestroy)(CUmemoryPool handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_pool *pool = fg_pool_of(handle);
    bool users = pool && fg_device_pool_forget(pool);
    if (users) {
        pool->doomed = true;
        fg_pool_end_if_unused(pool);
    }
    pthread_mutex_unlock(&fg_mutex);
    return users ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemPoolTrimTo)(CUmemoryPool handle, size_t keep)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_pool *pool = fg_pool_of(handle);
    if (pool)
        fg_pool_trim(pool, keep);
    pthread_mutex_unlock(&fg_mutex);
    return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static uint64_t *number_of(struct fg_pool *pool, CUmemPool_attribute attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return &pool->used_high;
    default: return NULL;
    }
}

CUresult FG(cuMemPoolGetAttribute)(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_pool *pool = fg_pool_of(handle);
    CUresult result = pool && value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    uint64_t *number = result ? NULL : number_of(pool, attribute);
    if (number)
        memcpy(value, number, sizeof *number);
    else if (!result && attribute >= 1 && attribute <= 3)
        memcpy(value, &pool->reuse[attribute], sizeof pool->reuse[0]);
    else if (!result && attribute == CU_MEMPOOL_ATTR_ALLOCATION_TYPE)
        memcpy(value, &pool->properties.allocType, sizeof(int));
    else if (!result && attribute == CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES)
        memcpy(value, &pool->properties.handleTypes, sizeof(int));
    else
        result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemPoolSetAttribute)(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_pool *pool = fg_pool_of(handle);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    uint64_t *number = pool ? number_of(pool, attribute) : NULL, wanted = 0;
    if (number && value) {
        memcpy(&wanted, value, sizeof wanted);
        bool high = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
                    attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
        if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD || (high && !wanted)) {
            *number = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used
                      : high                                     ? pool->reserved
                                                                 : wanted;
            result = CUDA_SUCCESS;
        }
    } else if (pool && value && attribute >= 1 && attribute <= 3) {
        memcpy(&pool->reuse[attribute], value, sizeof pool->reuse[0]);
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemPoolSetAccess)(CUmemoryPool handle, const CUmemAccessDesc *access, size_t count)
{
    pthread_mutex_lock(&fg_mutex);
    bool known = fg_pool_of(handle) != NULL;
    pthread_mutex_unlock(&fg_mutex);
    return known && access && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemPoolGetAccess)(CUmemAccess_flags *flags, CUmemoryPool handle,
                                CUmemLocation *location)
{
    pthread_mutex_lock(&fg_mutex);
    bool known = fg_pool_of(handle) != NULL;
    pthread_mutex_unlock(&fg_mutex);
    if (!known || !flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

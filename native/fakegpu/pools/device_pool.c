/* A device's pools: the standard one, and the one that a program chose. */
#include "pools/pool.h"

static struct fg_pool *standard[FG_GPUS], *chosen[FG_GPUS];

static struct fg_pool *standard_pool(int gpu)
{
    if (!standard[gpu]) {
        CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
        properties.location.id = fg_device_of_gpu(gpu);
        standard[gpu] = fg_pool_new(gpu, &properties);
    }
    return standard[gpu];
}

struct fg_pool *fg_device_pool(int gpu)
{
    return chosen[gpu] ? chosen[gpu] : standard_pool(gpu);
}

bool fg_device_pool_forget(const struct fg_pool *pool)
{
    bool is_standard = false;
    for (int gpu = 0; gpu < FG_GPUS; gpu++) {
        is_standard |= standard[gpu] == pool;
        if (chosen[gpu] == pool)
            chosen[gpu] = NULL;
    }
    return !is_standard;
}

static CUresult device_pool(CUmemoryPool *out, CUdevice device, bool current)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    *out = (CUmemoryPool)(current ? fg_device_pool(gpu) : standard_pool(gpu));
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetDefaultMemPool)(CUmemoryPool *out, CUdevice device)
{
    return device_pool(out, device, false);
}
CUresult FG(cuDeviceGetMemPool)(CUmemoryPool *out, CUdevice device)
{
    return device_pool(out, device, true);
}

CUresult FG(cuDeviceSetMemPool)(CUdevice device, CUmemoryPool handle)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&fg_mutex);
    struct fg_pool *pool = fg_pool_of(handle);
    bool fits = pool && pool->gpu == gpu;
    if (fits)
        chosen[gpu] = pool;
    pthread_mutex_unlock(&fg_mutex);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool of_device(const CUmemLocation *location, CUmemAllocationType type)
{
    return location && location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
           type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

CUresult FG(cuMemGetDefaultMemPool)(CUmemoryPool *out, CUmemLocation *location,
                                    CUmemAllocationType type)
{
    return of_device(location, type) ? device_pool(out, location->id, false)
                                     : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult FG(cuMemGetMemPool)(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
    return of_device(location, type) ? device_pool(out, location->id, true)
                                     : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult FG(cuMemSetMemPool)(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    return of_device(location, type) ? FG(cuDeviceSetMemPool)(location->id, pool)
                                     : CUDA_ERROR_NOT_SUPPORTED;
}

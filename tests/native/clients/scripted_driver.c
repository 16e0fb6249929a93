/* A libcuda.so.1 of a few calls that do as the client says: each tells it by on_call() that its
 * effect is there and that it is about to return. So a test stops one thread inside the driver and
 * lets another go on, which no test double with threads and time of its own could promise.
 *
 * It keeps no memory and gives handles out again at once: what counts is what the library
 * charges. */
#include <cuda.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define STEP (32ull << 20)

/* In the client (-rdynamic). */
extern void on_call(const char *name);
extern uint64_t surplus_bytes; /* taken beyond what an allocation from a pool needs */
extern int is_trimmed;         /* stock goes back to the GPU just before such an allocation */
extern uint64_t most_reserved; /* by a pool, at any time */
extern CUmemGenericAllocationHandle next_handle;
extern __thread CUcontext current_context;
extern int is_context_kept; /* contexts refuse to end */
extern int has_events;      /* they can be made */

static struct pool {
    int exists;
    uint64_t reserved, used;
} pools[8];
static struct {
    CUdeviceptr address;
    uint64_t bytes;
    struct pool *pool;
} allocations[64];
static int n_pools, n_allocations;
static int n_libraries;

EXPORT CUresult cuInit(unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = 12040;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    memset(uuid, 7 + device, sizeof *uuid);
    return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current_context;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}
/* ---- contexts: a handle that is free comes again at once ------------------------------------- */

static int contexts[4];

EXPORT CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned flags,
                               CUdevice device)
{
    (void)parameters, (void)flags, (void)device;
    int i = 0;
    while (contexts[i])
        i++;
    contexts[i] = 1;
    *context = (CUcontext)&contexts[i];
    on_call("cuCtxCreate_v4");
    return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
    if (!is_context_kept)
        *(int *)context = 0;
    on_call("cuCtxDestroy_v2");
    return is_context_kept ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
EXPORT CUresult cuCtxGetLimit(size_t *value, CUlimit which)
{
    (void)which;
    *value = 1 << 20;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuCtxSetLimit(CUlimit which, size_t value)
{
    (void)which, (void)value;
    on_call("cuCtxSetLimit");
    return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)attribute, (void)device;
    *value = 1;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    static CUdeviceptr last = 0x600000000000ull;
    (void)bytes;
    *address = last += 1ull << 30;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    *free = *total = 1ull << 40;
    return CUDA_SUCCESS;
}

/* ---- virtual memory management --------------------------------------------------------------- */

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                            const CUmemAllocationProp *property, unsigned long long flags)
{
    (void)size, (void)property, (void)flags;
    *handle = next_handle;
    on_call("cuMemCreate");
    return CUDA_SUCCESS;
}
EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    (void)handle;
    on_call("cuMemRelease");
    return CUDA_SUCCESS;
}
EXPORT CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    (void)at, (void)size, (void)offset, (void)handle, (void)flags;
    on_call("cuMemMap");
    return CUDA_SUCCESS;
}
EXPORT CUresult cuMemUnmap(CUdeviceptr at, size_t size)
{
    (void)size;
    on_call("cuMemUnmap");
    return at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    (void)list, (void)count, (void)stream;
    on_call("cuMemMapArrayAsync");
    return CUDA_SUCCESS;
}
/* Without events the library waits for a stream. Their streams have always come to them. */
EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    *event = (CUevent)4096;
    return has_events ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)event, (void)stream;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuEventQuery(CUevent event)
{
    (void)event;
    on_call("cuEventQuery");
    return CUDA_SUCCESS;
}
EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

/* ---- libraries: always the same handle ------------------------------------------------------- */

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit,
                                  void **jit_values, unsigned int n_jit, CUlibraryOption *options,
                                  void **values, unsigned int n)
{
    (void)image, (void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n;
    *library = (CUlibrary)4096;
    n_libraries++;
    on_call("cuLibraryLoadData");
    return CUDA_SUCCESS;
}
EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    (void)library;
    on_call("cuLibraryUnload");
    return n_libraries-- > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- pools ----------------------------------------------------------------------------------- */

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    (void)properties;
    *pool = (CUmemoryPool)&pools[n_pools];
    pools[n_pools++] = (struct pool){.exists = 1};
    return CUDA_SUCCESS;
}
EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    *(struct pool *)pool = (struct pool){0};
    on_call("cuMemPoolDestroy");
    return CUDA_SUCCESS;
}
EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
    struct pool *pool = (struct pool *)handle;
    uint64_t least = pool->used > keep ? pool->used : keep;
    if (pool->reserved > least)
        pool->reserved = (least + STEP - 1) / STEP * STEP;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                      void *value)
{
    const struct pool *pool = (struct pool *)handle;
    if (!pool->exists)
        return CUDA_ERROR_INVALID_VALUE;
    *(uint64_t *)value = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? pool->reserved
                         : attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT   ? pool->used
                                                                           : UINT64_MAX;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    (void)pool, (void)device;
    return CUDA_ERROR_NOT_SUPPORTED;
}
EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool handle,
                                        CUstream stream)
{
    (void)stream;
    struct pool *pool = (struct pool *)handle;
    on_call("cuMemAllocFromPoolAsync");
    if (!pool->exists)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_trimmed)
        pool->reserved = (pool->used + STEP - 1) / STEP * STEP;
    pool->used += bytes;
    while (pool->reserved < pool->used)
        pool->reserved += STEP;
    pool->reserved += surplus_bytes;
    most_reserved = pool->reserved > most_reserved ? pool->reserved : most_reserved;
    *address = 0x700000000000ull + (uint64_t)n_allocations * (1ull << 30);
    allocations[n_allocations].address = *address;
    allocations[n_allocations].bytes = bytes;
    allocations[n_allocations++].pool = pool;
    return CUDA_SUCCESS;
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    (void)stream;
    for (int i = 0; i < n_allocations; i++)
        if (allocations[i].address == address && allocations[i].pool->exists)
            allocations[i].pool->used -= allocations[i].bytes;
    on_call("cuMemFreeAsync");
    return CUDA_SUCCESS;
}
EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    on_call("cuStreamSynchronize");
    return CUDA_SUCCESS;
}

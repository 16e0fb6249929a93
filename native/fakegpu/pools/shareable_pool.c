/* Pools of one process in another: the memory stays the exporter's, and ends with it. */
#include <string.h>

#include "pools/pool.h"
#include "sharing/export_fd.h"
#include "state/ledger.h"

CUresult FG(cuMemPoolExportToShareableHandle)(void *out, CUmemoryPool handle,
                                              CUmemAllocationHandleType type,
                                              unsigned long long flags)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_pool *pool = fg_pool_of(handle);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (pool && out && !flags && pool->properties.handleTypes & type && !pool->imported) {
        if (!pool->export_id)
            pool->export_id = fg_new_id();
        struct fg_export text = {.kind = FG_EXPORT_POOL,
                                 .shared = -1,
                                 .gpu = pool->gpu,
                                 .id = pool->export_id,
                                 .pool = pool->properties};
        int fd = fg_export_make(&text);
        result = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
        if (fd >= 0)
            *(int *)out = fd;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemPoolImportFromShareableHandle)(CUmemoryPool *out, void *os_handle,
                                                CUmemAllocationHandleType type,
                                                unsigned long long flags)
{
    struct fg_export text;
    if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !fg_export_read((int)(intptr_t)os_handle, FG_EXPORT_POOL, &text))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    struct fg_pool *pool = fg_pool_new(text.gpu, &text.pool);
    pool->imported = true;
    pool->export_id = text.id;
    pool->properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    *out = (CUmemoryPool)pool;
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

struct pointer { uint64_t magic, pool, size; };

CUresult FG(cuMemPoolExportPointer)(CUmemPoolPtrExportData *out, CUdeviceptr address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    struct fg_pool *pool =
        range && range->kind == FG_POOLED && range->base == address ? range->owner : NULL;
    bool exported = pool && out && pool->export_id && !pool->imported;
    if (exported) {
        struct pointer data = {FG_POOL_MAGIC, pool->export_id, range->size};
        memset(out, 0, sizeof *out);
        memcpy(out, &data, sizeof data);
    }
    pthread_mutex_unlock(&fg_mutex);
    return exported ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemPoolImportPointer)(CUdeviceptr *out, CUmemoryPool handle,
                                    CUmemPoolPtrExportData *exported)
{
    struct pointer data = {0};
    if (exported)
        memcpy(&data, exported, sizeof data);
    pthread_mutex_lock(&fg_mutex);
    struct fg_pool *pool = fg_pool_of(handle);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (pool && out && pool->imported && data.magic == FG_POOL_MAGIC &&
        data.pool == pool->export_id) {
        uint64_t base = fg_va_reserve(fg_round_up(data.size, 2 << 20), 2 << 20);
        struct fg_range *range = fg_range_new(FG_POOLED, pool->gpu, NULL, base, data.size);
        range->owner = pool;
        range->free = fg_pool_free;
        pool->live++;
        *out = base;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

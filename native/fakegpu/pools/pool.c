/* Stream-ordered allocation. A pool reserves the GPU's memory in steps of 32 MiB and cuts allocations
 * out of what it has. What is freed stays reserved until the host synchronises and more than the
 * release threshold is reserved, or someone trims, or the GPU runs out. A free is taken to be
 * complete at once: its memory serves the next allocation of any stream (kinder than the driver,
 * which keeps it back until the streams are ordered). */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "driver/core.h"
#include "sharing/export_fd.h"
#include "streams/work.h"

struct segment { struct segment *next; uint64_t base, bytes; };
struct pool {
    uint64_t magic;
    struct pool *next;
    int gpu;                           /* -1: of the host */
    struct segment *segments;
    struct fg_space space;
    uint64_t reserved, reserved_high, used, used_high, threshold;
    uint64_t live;                     /* allocations */
    uint64_t limit;                    /* maxSize; 0: none */
    int reuse[4];
    bool doomed, imported;
    CUmemPoolProps properties;
    uint64_t export_id;
};
#define MAGIC 0x6c6f6f7070756746ull
static struct pool *pools;             /* all of this process */
static struct pool *standard[FG_GPUS], *chosen[FG_GPUS];
static _Atomic bool unreleased;                /* some pool may hold free memory */

static struct pool *find_pool(CUmemoryPool handle)
{
    for (struct pool *each = pools; each; each = each->next)
        if (each == (struct pool *)handle && !each->doomed)
            return each;
    return NULL;
}

static struct pool *new_pool(int gpu, const CUmemPoolProps *properties)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        abort();
    pool->magic = MAGIC;
    pool->gpu = gpu;
    pool->properties = *properties;
    pool->limit = properties->maxSize;
    for (int i = 0; i < 4; i++)
        pool->reuse[i] = 1;
    pool->next = pools;
    pools = pool;
    return pool;
}

static struct pool *standard_pool(int gpu)
{
    if (!standard[gpu]) {
        CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
        properties.location.id = fg_device_of_gpu(gpu);
        standard[gpu] = new_pool(gpu, &properties);
    }
    return standard[gpu];
}

/* ---- reserving ------------------------------------------------------------------------------------ */

/* Gives back segments without an allocation until no more than `keep` bytes are reserved. */
static bool trim(struct pool *pool, uint64_t keep)
{
    bool released = false;
    for (struct segment **at = &pool->segments; *at;) {
        struct segment *segment = *at;
        if (pool->reserved <= keep || !fg_space_take_at(&pool->space, segment->base, segment->bytes)) {
            at = &segment->next;
            continue;
        }
        *at = segment->next;
        pool->reserved -= segment->bytes;
        if (pool->gpu >= 0)
            fg_uncharge(pool->gpu, segment->bytes);
        fg_va_release(segment->base, segment->bytes);
        free(segment);
        released = true;
    }
    return released;
}

static CUresult grow(struct pool *pool, uint64_t bytes)
{
    uint64_t step = pool->gpu >= 0 ? fg_state->gpu[pool->gpu].profile.pool_step_bytes : 32 << 20;
    uint64_t size = fg_round_up(bytes, step);
    if (pool->limit && pool->reserved + size > pool->limit)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = pool->gpu >= 0 ? fg_take_gpu_memory(pool->gpu, size) : CUDA_SUCCESS;
    if (result)
        return result;
    struct segment *segment = malloc(sizeof *segment);
    if (!segment)
        abort();
    *segment = (struct segment){pool->segments, fg_va_reserve(size, 2 << 20), size};
    pool->segments = segment;
    fg_space_add(&pool->space, segment->base, size);
    pool->reserved += size;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return CUDA_SUCCESS;
}

static void end_if_unused(struct pool *pool)
{
    if (!pool->doomed || pool->live)
        return;
    trim(pool, 0);
    struct pool **at = &pools;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    fg_space_end(&pool->space);
    pool->magic = 0;
    free(pool);
}

static CUresult take(struct pool *pool, uint64_t bytes, struct fg_range **range)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > 1ull << 46)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (pool->imported)
        return CUDA_ERROR_NOT_PERMITTED;
    uint64_t align = pool->gpu >= 0 ? fg_state->gpu[pool->gpu].profile.align_bytes : 512;
    uint64_t size = fg_round_up(bytes, align);
    uint64_t base = fg_space_take(&pool->space, size, align);
    if (!base) {
        CUresult result = grow(pool, size);
        if (result)
            return result;
        base = fg_space_take(&pool->space, size, align);
    }
    *range = fg_range_new(FG_POOLED, pool->gpu, NULL, base, bytes);
    if (!*range)
        abort();
    (*range)->owner = pool;
    pool->live++;
    pool->used += size;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    return CUDA_SUCCESS;
}

CUresult fg_pool_free(struct fg_range *range)
{
    struct pool *pool = range->owner;
    uint64_t align = pool->gpu >= 0 ? fg_state->gpu[pool->gpu].profile.align_bytes : 512;
    uint64_t size = fg_round_up(range->size, align), base = range->base;
    fg_range_end(range);
    pool->live--;
    if (pool->imported) {
        fg_va_release(base, fg_round_up(size, 2 << 20));
    } else {
        pool->used -= size;
        fg_space_add(&pool->space, base, size);
        unreleased = true;
    }
    end_if_unused(pool);
    return CUDA_SUCCESS;
}

void fg_pools_synchronized(void)
{
    if (!unreleased)
        return;
    pthread_mutex_lock(&fg_mutex);
    unreleased = false;
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->reserved > pool->threshold)
            trim(pool, pool->threshold);
    pthread_mutex_unlock(&fg_mutex);
}

bool fg_pools_trim(int gpu)
{
    bool released = false;
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->gpu == gpu)
            released |= trim(pool, 0);
    return released;
}

/* ---- allocation -------------------------------------------------------------------------------------- */

CUresult FG(cuMemAllocFromPoolAsync)(CUdeviceptr *out, size_t bytes, CUmemoryPool handle, CUstream stream)
{
    struct fg_stream *ordered;
    struct fg_range *range;
    CUresult result = fg_stream_of(stream, &ordered);
    if (result)
        return result;
    if (ordered->capture)
        return out ? fg_capture_memory_alloc(ordered, bytes, out) : CUDA_ERROR_INVALID_VALUE;
    fg_clock_spend(0);
    pthread_mutex_lock(&fg_mutex);
    struct pool *pool = find_pool(handle);
    result = pool && out ? take(pool, bytes, &range) : CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *out = range->base;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemAllocAsync)(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    struct fg_context *context;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_need_context(&context);
    if (!result) {
        struct pool *pool = chosen[context->gpu] ? chosen[context->gpu] : standard_pool(context->gpu);
        result = FG(cuMemAllocFromPoolAsync)(out, bytes, (CUmemoryPool)pool, stream);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemFreeAsync)(CUdeviceptr address, CUstream stream)
{
    struct fg_stream *ordered;
    CUresult result = fg_stream_of(stream, &ordered);
    if (result)
        return result;
    return ordered->capture ? fg_capture_memory_free(ordered, address) : fg_memory_free(address);
}

/* ---- pools ------------------------------------------------------------------------------------------- */

CUresult FG(cuMemPoolCreate)(CUmemoryPool *out, const CUmemPoolProps *properties)
{
    if (!out || !properties || (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED &&
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
    *out = (CUmemoryPool)new_pool(gpu, properties);
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

CUresult FG(cuMemPoolDestroy)(CUmemoryPool handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct pool *pool = find_pool(handle);
    bool users = pool != NULL;
    for (int gpu = 0; gpu < FG_GPUS; gpu++) {
        users = users && pool != standard[gpu];
        if (pool && chosen[gpu] == pool)
            chosen[gpu] = NULL;
    }
    if (users) {
        pool->doomed = true;
        end_if_unused(pool);
    }
    pthread_mutex_unlock(&fg_mutex);
    return users ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemPoolTrimTo)(CUmemoryPool handle, size_t keep)
{
    pthread_mutex_lock(&fg_mutex);
    struct pool *pool = find_pool(handle);
    if (pool)
        trim(pool, keep);
    pthread_mutex_unlock(&fg_mutex);
    return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static uint64_t *number_of(struct pool *pool, CUmemPool_attribute attribute)
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
    struct pool *pool = find_pool(handle);
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
    struct pool *pool = find_pool(handle);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    uint64_t *number = pool ? number_of(pool, attribute) : NULL, wanted = 0;
    if (number && value) {
        memcpy(&wanted, value, sizeof wanted);
        bool high = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
        if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD || (high && !wanted)) {
            *number = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used : high ? pool->reserved : wanted;
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
    bool known = find_pool(handle) != NULL;
    pthread_mutex_unlock(&fg_mutex);
    return known && access && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemPoolGetAccess)(CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location)
{
    pthread_mutex_lock(&fg_mutex);
    bool known = find_pool(handle) != NULL;
    pthread_mutex_unlock(&fg_mutex);
    if (!known || !flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

/* ---- the pool of a device -------------------------------------------------------------------------- */

static CUresult device_pool(CUmemoryPool *out, CUdevice device, bool current)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    *out = (CUmemoryPool)(current && chosen[gpu] ? chosen[gpu] : standard_pool(gpu));
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetDefaultMemPool)(CUmemoryPool *out, CUdevice device) { return device_pool(out, device, false); }
CUresult FG(cuDeviceGetMemPool)(CUmemoryPool *out, CUdevice device) { return device_pool(out, device, true); }

CUresult FG(cuDeviceSetMemPool)(CUdevice device, CUmemoryPool handle)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&fg_mutex);
    struct pool *pool = find_pool(handle);
    bool fits = pool && pool->gpu == gpu;
    if (fits)
        chosen[gpu] = pool;
    pthread_mutex_unlock(&fg_mutex);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool of_device(const CUmemLocation *location, CUmemAllocationType type)
{
    return location && location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

CUresult FG(cuMemGetDefaultMemPool)(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
    return of_device(location, type) ? device_pool(out, location->id, false) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult FG(cuMemGetMemPool)(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type)
{
    return of_device(location, type) ? device_pool(out, location->id, true) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult FG(cuMemSetMemPool)(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    return of_device(location, type) ? FG(cuDeviceSetMemPool)(location->id, pool) : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- between processes: the memory stays the exporter's, and ends with it ---------------------------- */

CUresult FG(cuMemPoolExportToShareableHandle)(void *out, CUmemoryPool handle, CUmemAllocationHandleType type,
                                              unsigned long long flags)
{
    pthread_mutex_lock(&fg_mutex);
    struct pool *pool = find_pool(handle);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (pool && out && !flags && pool->properties.handleTypes & type && !pool->imported) {
        if (!pool->export_id)
            pool->export_id = fg_new_id();
        struct fg_export text = {.kind = FG_EXPORT_POOL, .shared = -1, .gpu = pool->gpu, .id = pool->export_id,
                                 .pool = pool->properties};
        int fd = fg_export_make(&text);
        result = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
        if (fd >= 0)
            *(int *)out = fd;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemPoolImportFromShareableHandle)(CUmemoryPool *out, void *os_handle, CUmemAllocationHandleType type,
                                                unsigned long long flags)
{
    struct fg_export text;
    if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !fg_export_read((int)(intptr_t)os_handle, FG_EXPORT_POOL, &text))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    struct pool *pool = new_pool(text.gpu, &text.pool);
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
    struct pool *pool = range && range->kind == FG_POOLED && range->base == address ? range->owner : NULL;
    bool exported = pool && out && pool->export_id && !pool->imported;
    if (exported) {
        struct pointer data = {MAGIC, pool->export_id, range->size};
        memset(out, 0, sizeof *out);
        memcpy(out, &data, sizeof data);
    }
    pthread_mutex_unlock(&fg_mutex);
    return exported ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemPoolImportPointer)(CUdeviceptr *out, CUmemoryPool handle, CUmemPoolPtrExportData *exported)
{
    struct pointer data = {0};
    if (exported)
        memcpy(&data, exported, sizeof data);
    pthread_mutex_lock(&fg_mutex);
    struct pool *pool = find_pool(handle);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (pool && out && pool->imported && data.magic == MAGIC && data.pool == pool->export_id) {
        uint64_t base = fg_va_reserve(fg_round_up(data.size, 2 << 20), 2 << 20);
        struct fg_range *range = fg_range_new(FG_POOLED, pool->gpu, NULL, base, data.size);
        range->owner = pool;
        pool->live++;
        *out = base;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

/* Stream-ordered allocation. A pool reserves the GPU's memory in steps of 32 MiB and cuts
 * allocations out of what it has. What is freed stays reserved until the host synchronises and
 * more than the release threshold is reserved, or someone trims, or the GPU runs out. A free is
 * taken to be complete at once: its memory serves the next allocation of any stream (kinder than
 * the driver, which keeps it back until the streams are ordered). */
#include "pools/pool.h"

#include <stdlib.h>

#include "memory/gpu_memory.h"
#include "state/ledger.h"

static struct fg_pool *pools;   /* all of this process */
static _Atomic bool unreleased; /* some pool may hold free memory */

struct fg_pool *fg_pool_of(CUmemoryPool handle)
{
    for (struct fg_pool *each = pools; each; each = each->next)
        if (each == (struct fg_pool *)handle && !each->doomed)
            return each;
    return NULL;
}

struct fg_pool *fg_pool_new(int gpu, const CUmemPoolProps *properties)
{
    struct fg_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        abort();
    pool->magic = FG_POOL_MAGIC;
    pool->gpu = gpu;
    pool->properties = *properties;
    pool->limit = properties->maxSize;
    for (int i = 0; i < 4; i++)
        pool->reuse[i] = 1;
    pool->next = pools;
    pools = pool;
    return pool;
}

/* ---- reserving ------------------------------------------------------------------------------- */

bool fg_pool_trim(struct fg_pool *pool, uint64_t keep)
{
    bool released = false;
    for (struct fg_segment **at = &pool->segments; *at;) {
        struct fg_segment *segment = *at;
        if (pool->reserved <= keep ||
            !fg_space_take_at(&pool->space, segment->base, segment->bytes)) {
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

static CUresult grow(struct fg_pool *pool, uint64_t bytes)
{
    uint64_t step = pool->gpu >= 0 ? fg_state->gpu[pool->gpu].profile.pool_step_bytes : 32 << 20;
    uint64_t size = fg_round_up(bytes, step);
    if (pool->limit && pool->reserved + size > pool->limit)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = pool->gpu >= 0 ? fg_take_gpu_memory(pool->gpu, size) : CUDA_SUCCESS;
    if (result)
        return result;
    struct fg_segment *segment = malloc(sizeof *segment);
    if (!segment)
        abort();
    *segment = (struct fg_segment){pool->segments, fg_va_reserve(size, 2 << 20), size};
    pool->segments = segment;
    fg_space_add(&pool->space, segment->base, size);
    pool->reserved += size;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return CUDA_SUCCESS;
}

void fg_pool_end_if_unused(struct fg_pool *pool)
{
    if (!pool->doomed || pool->live)
        return;
    fg_pool_trim(pool, 0);
    struct fg_pool **at = &pools;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    fg_space_end(&pool->space);
    pool->magic = 0;
    free(pool);
}

CUresult fg_pool_take(struct fg_pool *pool, uint64_t bytes, struct fg_range **range)
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
    (*range)->free = fg_pool_free;
    pool->live++;
    pool->used += size;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    return CUDA_SUCCESS;
}

CUresult fg_pool_free(struct fg_range *range)
{
    struct fg_pool *pool = range->owner;
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
    fg_pool_end_if_unused(pool);
    return CUDA_SUCCESS;
}

void fg_pools_synchronized(void)
{
    if (!unreleased)
        return;
    pthread_mutex_lock(&fg_mutex);
    unreleased = false;
    for (struct fg_pool *pool = pools; pool; pool = pool->next)
        if (pool->reserved > pool->threshold)
            fg_pool_trim(pool, pool->threshold);
    pthread_mutex_unlock(&fg_mutex);
}

static bool trim_under_need(int gpu)
{
    bool released = false;
    for (struct fg_pool *pool = pools; pool; pool = pool->next)
        if (pool->gpu == gpu)
            released |= fg_pool_trim(pool, 0);
    return released;
}

__attribute__((constructor)) static void help_in_need(void)
{
    fg_when_gpu_memory_is_short(trim_under_need);
}

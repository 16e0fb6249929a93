/* An allocation from a stock, and its end: reserved by the worst that the stock may grow, charged
 * by what it grew. */
#include <stdlib.h>

#include "counting/call_counts.h"
#include "pools/pools.h"

static uint64_t fine_bytes(uint64_t bytes) /* allocations in a pool start at multiples of 512 */
{
    return bytes > UINT64_MAX - 511 ? bytes : (bytes + 511) & ~511ull;
}

uint64_t vg_pool_steps(uint64_t bytes)
{
    return bytes > UINT64_MAX - VG_POOL_STEP
               ? UINT64_MAX
               : (bytes + VG_POOL_STEP - 1) / VG_POOL_STEP * VG_POOL_STEP;
}

bool vg_draw_begin(struct vg_draw *draw, CUmemoryPool handle, CUdevice device, uint64_t growth,
                   uint64_t bytes, CUstream stream)
{
    struct vg_pool *pool = vg_pool_enter(handle, device);
    *draw = (struct vg_draw){.pool = pool, .reserved = growth};
    if (!pool)
        return false;
    int row = pool->row;
    for (bool trimmed = false;; trimmed = true) {
        /* No lock is held here: to reserve may mean to wait for another process. */
        if (row < 0 || vg_try_reserve(row, growth) || (trimmed && vg_borrow(row, growth)))
            return true;
        vg_pools_begin();
        vg_pool_refresh(pool); /* what it gave back since is not free in it */
        if (bytes && pool->drawing == 1 && vg_range_fits(pool, bytes, stream)) {
            draw->reserved = 0;
            draw->borrowed = pool->borrowed = true;
        } else if (!trimmed) {
            vg_pools_trim(row);
        } else {
            pool->drawing--;
            vg_pool_leave(pool);
        }
        vg_pools_end();
        if (draw->borrowed)
            return true;
        if (trimmed)
            break;
    }
    vg_refused(row);
    return false;
}

/* Charges the true size, and keeps the stock; whether that is within the limit. `bytes` of it were
 * taken at `address` (0: none, or not known where). That is noted before another call may begin,
 * which would else take them for free at the limit. */
static bool settle(struct vg_draw *draw, bool worked, uint64_t address, uint64_t bytes)
{
    struct vg_pool *pool = draw->pool;
    uint64_t now, limit, growth = 0;
    bool shrunk = false;
    vg_pools_begin();
    pool->drawing--;
    if (draw->borrowed)
        pool->borrowed = false;
    if (pool->row >= 0 && pool->destroyed) { /* its handle may be another's */
        growth = worked ? draw->reserved : 0;
        vg_settle(pool->row, draw->reserved, growth);
        pool->charged += growth;
    } else if (pool->row >= 0 && vg_pool_size(pool, &now)) {
        growth = now > pool->charged ? now - pool->charged : 0;
        vg_settle(pool->row, draw->reserved, growth);
        shrunk = now < pool->charged;
        if (shrunk)
            vg_release(pool->row, pool->charged - now);
        pool->charged = now;
    } else if (pool->row >= 0) {
        vg_settle(pool->row, draw->reserved, 0);
    }
    /* New memory, and no growth by as much: the driver gave some back at the same time. */
    if (address && !vg_range_taken(pool, address, address + bytes))
        shrunk |= growth < bytes;
    if (shrunk)
        vg_ranges_forget(pool);
    vg_pools_end();
    return growth <= draw->reserved || !(limit = vg_limit(pool->row)) ||
           vg_used(pool->row) <= limit;
}

void vg_draw_end(struct vg_draw *draw, bool worked)
{
    settle(draw, worked, 0, 0);
    vg_pools_begin();
    vg_pool_leave(draw->pool);
    vg_pools_end();
}

/* The driver needed more than expected: the allocation is given back. No lock is held: the stream
 * may wait for a host function, and that for another thread of the program, which allocates. */
static void undo(int row, CUdeviceptr address, CUstream stream)
{
    REAL(cuMemFreeAsync)(address, stream);
    REAL(cuStreamSynchronize)(stream);
    vg_pools_begin();
    vg_pools_trim(row);
    vg_pools_end();
}

CUresult vg_pool_allocate(CUmemoryPool handle, CUdevice device, CUdeviceptr *address, size_t bytes,
                          CUstream stream, CUstream given,
                          CUresult (*call)(CUdeviceptr *, size_t, CUmemoryPool, CUstream))
{
    uint64_t begun = vg_count_begin();
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct vg_draw draw;
    if (vg_draw_begin(&draw, handle, device, vg_pool_steps(bytes), fine_bytes(bytes), stream)) {
        struct vg_pool *pool = draw.pool;
        result = call(address, bytes, handle, given);
        bool fits = settle(&draw, result == CUDA_SUCCESS, result ? 0 : *address, fine_bytes(bytes));
        if (result == CUDA_SUCCESS && !fits) {
            undo(pool->row, *address, stream);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (result == CUDA_SUCCESS) { /* the allocation keeps the stock from here on */
            vg_record_put(&(struct vg_record){.kind = VG_KIND_STREAMED,
                                              .key = *address,
                                              .row = (int8_t)pool->row,
                                              .bytes = fine_bytes(bytes),
                                              .other = (uint64_t)pool});
        } else {
            vg_pools_begin();
            vg_pool_leave(pool);
            vg_pools_end();
        }
    }
    vg_count_end(VG_CALL_ALLOC, begun, result ? 0 : bytes);
    return result;
}

/* What was freed is free for this stream, unless by now it may have been taken again. */
static CUresult freed(struct vg_record *record, CUresult result, const CUstream *stream,
                      uint64_t changes)
{
    struct vg_pool *pool = (struct vg_pool *)record->other;
    if (result != CUDA_SUCCESS) {
        vg_record_put(record);
        return result;
    }
    vg_pools_begin();
    vg_pool_refresh(pool);
    if (stream && changes == atomic_load(&pool->changes))
        vg_range_freed(pool, record->key, record->key + record->bytes, *stream);
    vg_pool_leave(pool);
    vg_pools_end();
    return result;
}

static uint64_t changes_of(const struct vg_record *record)
{
    return atomic_load(&((struct vg_pool *)record->other)->changes);
}

CUresult vg_pool_free(struct vg_record *record, CUresult (*free_it)(uint64_t))
{
    uint64_t begun = vg_count_begin();
    CUresult result = freed(record, free_it(record->key), NULL, 0);
    vg_count_end(VG_CALL_FREE, begun, result ? 0 : record->bytes);
    return result;
}

CUresult vg_pool_free_async(struct vg_record *record, CUstream stream, CUstream given,
                            CUresult (*call)(CUdeviceptr, CUstream))
{
    uint64_t begun = vg_count_begin(), changes = changes_of(record);
    CUresult result = freed(record, call(record->key, given), &stream, changes);
    vg_count_end(VG_CALL_FREE, begun, result ? 0 : record->bytes);
    return result;
}

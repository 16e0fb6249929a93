/* Stocks of memory (see pool.h): their size, charged and followed.
 *
 * The lock of all stocks is held while a stock's size is asked for or trimmed and its charge follows, lest
 * two threads charge one change twice. Those calls tell or give back what nobody uses: none of them waits
 * for the GPU, and so for no thread of the program either. Calls that may wait are made without it; `live`
 * keeps the stock meanwhile. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pools/pools.h"

static pthread_mutex_t vg_pools_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vg_pool *vg_pools;
static _Atomic bool vg_pools_any;

static bool vg_pool_size(const struct vg_pool *pool, uint64_t *bytes)
{
    cuuint64_t now = 0;
    CUresult result = pool->handle
        ? REAL(cuMemPoolGetAttribute)(pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &now)
        : REAL(cuDeviceGetGraphMemAttribute)(pool->device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &now);
    *bytes = now;
    return result == CUDA_SUCCESS;
}

static void vg_pool_refresh(struct vg_pool *pool)
{
    uint64_t now;
    if (pool->row < 0 || pool->destroyed || !vg_pool_size(pool, &now))
        return;
    if (now < pool->charged) {
        if (pool->borrowed)
            return; /* what it gave back may be about to be taken again, unreserved */
        vg_release(pool->row, pool->charged - now);
        pool->n_ranges = 0; /* which of them the driver gave back is not known */
        atomic_fetch_add(&pool->changes, 1);
    } else if (now > pool->charged) {
        vg_settle(pool->row, 0, now - pool->charged);
    }
    pool->charged = now;
}

/* Bytes that the driver may give back in the next call: those in stock above `keep`, or (NULL) above
 * the threshold that the program set for the pool. */
static uint64_t vg_pool_spare(const struct vg_pool *pool, const uint64_t *keep)
{
    cuuint64_t used = 0, threshold = UINT64_MAX;
    if (!pool->handle || pool->row < 0 || pool->destroyed || !pool->charged)
        return 0;
    REAL(cuMemPoolGetAttribute)(pool->handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
    if (keep)
        threshold = *keep;
    else
        REAL(cuMemPoolGetAttribute)(pool->handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    threshold = threshold > used ? threshold : used;
    return pool->charged > threshold ? pool->charged - threshold : 0;
}

void vg_pools_expect(struct vg_expected *expected, CUmemoryPool only, const uint64_t *keep)
{
    expected->any = false;
    if (likely(!atomic_load_explicit(&vg_pools_any, memory_order_relaxed)))
        return;
    memset(expected->bytes, 0, sizeof expected->bytes);
    pthread_mutex_lock(&vg_pools_lock);
    for (struct vg_pool *pool = vg_pools; pool; pool = pool->next) {
        uint64_t spare = only && pool->handle != only ? 0 : vg_pool_spare(pool, keep);
        if (spare) {
            vg_leave(pool->row, spare);
            expected->bytes[pool->row] += spare;
            expected->any = true;
        }
    }
    pthread_mutex_unlock(&vg_pools_lock);
}

void vg_pools_settle(const struct vg_expected *expected)
{
    vg_pools_refresh();
    for (int row = 0; expected->any && row < VG_DEVICES; row++)
        if (expected->bytes[row])
            vg_left(row, expected->bytes[row], 0);
}

void vg_pools_refresh(void)
{
    vg_later_settle();
    vg_exports_settle();
    if (!atomic_load_explicit(&vg_pools_any, memory_order_relaxed))
        return;
    pthread_mutex_lock(&vg_pools_lock);
    for (struct vg_pool *pool = vg_pools; pool; pool = pool->next)
        if (pool->charged)
            vg_pool_refresh(pool);
    pthread_mutex_unlock(&vg_pools_lock);
}

static struct vg_pool *vg_pool_new(CUmemoryPool handle, CUdevice device)
{
    struct vg_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->handle = handle;
    pool->device = device;
    pool->row = device >= 0 ? vg_row(device) : -1;
    pool->next = vg_pools;
    vg_pools = pool;
    atomic_store_explicit(&vg_pools_any, true, memory_order_relaxed);
    vg_pool_refresh(pool); /* it may be older than us */
    return pool;
}

static struct vg_pool *vg_pool_find(CUmemoryPool handle, CUdevice device)
{
    struct vg_pool *pool = vg_pools;
    while (pool && (pool->destroyed || pool->handle != handle || (!handle && pool->device != device)))
        pool = pool->next;
    return pool;
}

/* The GPU of a stock that was not made by this process: a default one, perhaps of another GPU than the
 * stream's. */
static CUdevice vg_pool_home(CUmemoryPool handle, CUdevice device)
{
    CUmemoryPool pool;
    for (int row = 0; handle && row < VG_DEVICES; row++) {
        CUdevice its = vg_row_device(row);
        if (its >= 0 && REAL(cuDeviceGetDefaultMemPool)(&pool, its) == CUDA_SUCCESS && pool == handle)
            return its;
    }
    return device;
}

static bool vg_pools_trim(int row)
{
    bool any = false;
    for (struct vg_pool *pool = vg_pools; pool; pool = pool->next) {
        if (pool->row != row || !pool->charged || pool->destroyed || pool->borrowed)
            continue;
        uint64_t before = pool->charged;
        vg_leave(row, before);
        if (pool->handle)
            REAL(cuMemPoolTrimTo)(pool->handle, 0);
        else
            REAL(cuDeviceGraphMemTrim)(pool->device);
        vg_pool_refresh(pool);
        vg_left(row, before, 0);
        any |= pool->charged < before;
    }
    return any;
}

bool vg_pools_give_back(int row)
{
    bool any = vg_later_settle() | vg_exports_settle();
    if (!atomic_load_explicit(&vg_pools_any, memory_order_relaxed))
        return any;
    pthread_mutex_lock(&vg_pools_lock);
    any |= vg_pools_trim(row);
    pthread_mutex_unlock(&vg_pools_lock);
    return any;
}

/* ---- what is free inside --------------------------------------------------------------------------- */

static void vg_range_freed(struct vg_pool *pool, uint64_t start, uint64_t end, CUstream stream)
{
    for (unsigned int i = 0; i < pool->n_ranges;) {
        struct vg_range *r = &pool->range[i];
        if (r->stream == stream && (r->end == start || r->start == end)) {
            start = r->start < start ? r->start : start;
            end = r->end > end ? r->end : end;
            *r = pool->range[--pool->n_ranges];
            i = 0;
        } else {
            i++;
        }
    }
    if (pool->n_ranges < sizeof pool->range / sizeof *pool->range)
        pool->range[pool->n_ranges++] = (struct vg_range){start, end, stream};
}

static void vg_range_taken(struct vg_pool *pool, uint64_t start, uint64_t end)
{
    for (unsigned int i = 0; i < pool->n_ranges;) {
        struct vg_range r = pool->range[i];
        if (start >= r.end || end <= r.start) {
            i++;
            continue;
        }
        pool->range[i] = pool->range[--pool->n_ranges];
        if (r.start < start)
            vg_range_freed(pool, r.start, start, r.stream);
        if (r.end > end)
            vg_range_freed(pool, end, r.end, r.stream);
        i = 0;
    }
}

static bool vg_range_fits(const struct vg_pool *pool, uint64_t bytes, CUstream stream)
{
    cuuint64_t used;
    if (!pool->handle) /* graphs get their memory mapped, wherever it lies */
        return REAL(cuDeviceGetGraphMemAttribute)(pool->device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used) == CUDA_SUCCESS &&
               used <= pool->charged && pool->charged - used >= bytes;
    for (unsigned int i = 0; i < pool->n_ranges; i++)
        if (pool->range[i].stream == stream && pool->range[i].end - pool->range[i].start >= bytes)
            return true;
    return false;
}

static uint64_t vg_fine(uint64_t bytes) /* allocations in a pool start at multiples of 512 */
{
    return bytes > UINT64_MAX - 511 ? bytes : (bytes + 511) & ~511ull;
}

/* ---- allocations -------------------------------------------------------------------------------------- */

/* The lock is held. One allocation, or one call under way, less; the last of a destroyed stock ends it. */
static void vg_pool_leave(struct vg_pool *pool)
{
    pool->live--;
    if (!pool->destroyed || pool->live)
        return;
    for (struct vg_pool **at = &vg_pools; *at; at = &(*at)->next)
        if (*at == pool) {
            *at = pool->next;
            break;
        }
    if (pool->row >= 0)
        vg_release(pool->row, pool->charged);
    free(pool);
}

uint64_t vg_pool_steps(uint64_t bytes)
{
    return bytes > UINT64_MAX - VG_POOL_STEP ? UINT64_MAX : (bytes + VG_POOL_STEP - 1) / VG_POOL_STEP * VG_POOL_STEP;
}

#define VG_BORROW_WAIT_NS 1000000000ull /* nobody takes so long to get what is in stock */

/* The stock, kept alive, when no call is under way that may rely on what is free in it. */
static struct vg_pool *vg_pool_enter(CUmemoryPool handle, CUdevice device)
{
    pthread_mutex_lock(&vg_pools_lock);
    struct vg_pool *pool = vg_pool_find(handle, device);
    if (!pool)
        pool = vg_pool_new(handle, vg_pool_home(handle, device));
    if (pool) {
        pool->live++;
        for (uint64_t now = vg_now_ns(), end = now + VG_BORROW_WAIT_NS; pool->borrowed && now < end; now = vg_now_ns()) {
            pthread_mutex_unlock(&vg_pools_lock);
            vg_sleep_until_ns(now + 20000);
            pthread_mutex_lock(&vg_pools_lock);
        }
        pool->drawing++;
        vg_pool_refresh(pool);
    }
    pthread_mutex_unlock(&vg_pools_lock);
    return pool;
}

bool vg_draw_begin(struct vg_draw *draw, CUmemoryPool handle, CUdevice device, uint64_t growth, uint64_t bytes,
                   CUstream stream)
{
    struct vg_pool *pool = vg_pool_enter(handle, device);
    *draw = (struct vg_draw){.pool = pool, .reserved = growth};
    if (!pool)
        return false;
    int row = pool->row;
    for (bool trimmed = false;; trimmed = true) {
        /* No lock is held here: to reserve may mean to wait for another process. */
        if (row < 0 || vg_try_reserve(row, growth))
            return true;
        pthread_mutex_lock(&vg_pools_lock);
        if (bytes && pool->drawing == 1 && vg_range_fits(pool, bytes, stream)) {
            draw->reserved = 0;
            draw->borrowed = pool->borrowed = true;
        } else if (!trimmed) {
            vg_pools_trim(row);
        } else {
            pool->drawing--;
            vg_pool_leave(pool);
        }
        pthread_mutex_unlock(&vg_pools_lock);
        if (draw->borrowed)
            return true;
        if (trimmed)
            break;
    }
    vg_refused(row);
    return false;
}

/* Charges the true size, and keeps the stock; whether that is within the limit. */
static bool vg_draw_settle(struct vg_draw *draw, bool worked)
{
    struct vg_pool *pool = draw->pool;
    uint64_t now, limit, growth = 0;
    pthread_mutex_lock(&vg_pools_lock);
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
        if (now < pool->charged)
            vg_release(pool->row, pool->charged - now);
        pool->charged = now;
    } else if (pool->row >= 0) {
        vg_settle(pool->row, draw->reserved, 0);
    }
    pthread_mutex_unlock(&vg_pools_lock);
    return growth <= draw->reserved || !(limit = vg_limit(pool->row)) || vg_used(pool->row) <= limit;
}

void vg_draw_end(struct vg_draw *draw, bool worked)
{
    vg_draw_settle(draw, worked);
    pthread_mutex_lock(&vg_pools_lock);
    vg_pool_leave(draw->pool);
    pthread_mutex_unlock(&vg_pools_lock);
}

/* The driver needed more than expected: the allocation is given back. No lock is held: the stream may wait
 * for a host function, and that for another thread of the program, which allocates. */
static void vg_pool_undo(int row, CUdeviceptr address, CUstream stream)
{
    REAL(cuMemFreeAsync)(address, stream);
    REAL(cuStreamSynchronize)(stream);
    pthread_mutex_lock(&vg_pools_lock);
    vg_pools_trim(row);
    pthread_mutex_unlock(&vg_pools_lock);
}

CUresult vg_pool_allocate(CUmemoryPool handle, CUdevice device, CUdeviceptr *address, size_t bytes, CUstream stream,
                          CUstream given, CUresult (*call)(CUdeviceptr *, size_t, CUmemoryPool, CUstream))
{
    uint64_t begun = vg_count_begin();
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    struct vg_draw draw;
    if (vg_draw_begin(&draw, handle, device, vg_pool_steps(bytes), vg_fine(bytes), stream)) {
        struct vg_pool *pool = draw.pool;
        result = call(address, bytes, handle, given);
        bool fits = vg_draw_settle(&draw, result == CUDA_SUCCESS);
        if (result == CUDA_SUCCESS && !fits) {
            vg_pool_undo(pool->row, *address, stream);
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
        pthread_mutex_lock(&vg_pools_lock);
        if (result == CUDA_SUCCESS) { /* the allocation keeps the stock from here on */
            vg_range_taken(pool, *address, *address + vg_fine(bytes));
            atomic_fetch_add(&pool->changes, 1);
            vg_book_put(&(struct vg_record){.kind = VG_KIND_STREAMED, .key = *address, .row = (int8_t)pool->row,
                                            .bytes = vg_fine(bytes), .other = (uint64_t)pool});
        } else {
            vg_pool_leave(pool);
        }
        pthread_mutex_unlock(&vg_pools_lock);
    }
    vg_count_end(VG_CALL_ALLOC, begun, result ? 0 : bytes);
    return result;
}

/* What was freed is free for this stream, unless by now it may have been taken again. */
static CUresult vg_pool_freed(struct vg_record *record, CUresult result, const CUstream *stream, uint64_t changes)
{
    struct vg_pool *pool = (struct vg_pool *)record->other;
    if (result != CUDA_SUCCESS) {
        vg_book_put(record);
        return result;
    }
    pthread_mutex_lock(&vg_pools_lock);
    vg_pool_refresh(pool);
    if (stream && changes == atomic_load(&pool->changes))
        vg_range_freed(pool, record->key, record->key + record->bytes, *stream);
    vg_pool_leave(pool);
    pthread_mutex_unlock(&vg_pools_lock);
    return result;
}

static uint64_t vg_pool_changes(const struct vg_record *record)
{
    return atomic_load(&((struct vg_pool *)record->other)->changes);
}

CUresult vg_pool_free(struct vg_record *record, CUresult (*free_it)(uint64_t))
{
    uint64_t begun = vg_count_begin();
    CUresult result = vg_pool_freed(record, free_it(record->key), NULL, 0);
    vg_count_end(VG_CALL_FREE, begun, result ? 0 : record->bytes);
    return result;
}

CUresult vg_pool_free_async(struct vg_record *record, CUstream stream, CUstream given,
                            CUresult (*call)(CUdeviceptr, CUstream))
{
    uint64_t begun = vg_count_begin(), changes = vg_pool_changes(record);
    CUresult result = vg_pool_freed(record, call(record->key, given), &stream, changes);
    vg_count_end(VG_CALL_FREE, begun, result ? 0 : record->bytes);
    return result;
}

void vg_pool_note(CUmemoryPool handle, CUdevice device)
{
    pthread_mutex_lock(&vg_pools_lock);
    vg_pool_new(handle, device);
    pthread_mutex_unlock(&vg_pools_lock);
}

CUresult vg_pool_destroy(CUmemoryPool handle)
{
    pthread_mutex_lock(&vg_pools_lock);
    struct vg_pool *pool = vg_pool_find(handle, -1);
    uint64_t hint = 0;
    int row = -1;
    if (pool) {
        vg_pool_refresh(pool);
        pool->destroyed = true; /* first: the driver may give its handle to another */
        row = pool->row;
        hint = row >= 0 && !pool->live ? pool->charged : 0;
        pool->live++; /* it stays over the call, whatever is freed meanwhile */
        if (hint)
            vg_leave(row, hint);
    }
    pthread_mutex_unlock(&vg_pools_lock);
    CUresult result = REAL(cuMemPoolDestroy)(handle);
    pthread_mutex_lock(&vg_pools_lock);
    if (pool && result != CUDA_SUCCESS)
        pool->destroyed = false;
    if (pool)
        vg_pool_leave(pool);
    if (hint)
        vg_left(row, hint, 0);
    pthread_mutex_unlock(&vg_pools_lock);
    return result;
}

void vg_pools_forked(void)
{
    pthread_mutex_init(&vg_pools_lock, NULL);
    while (vg_pools) {
        struct vg_pool *pool = vg_pools;
        vg_pools = pool->next;
        free(pool);
    }
}

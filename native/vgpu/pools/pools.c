/* Stocks of memory (see pools.h): their size, charged and followed.
 *
 * The lock of all stocks is held while a stock's size is asked for or trimmed and its charge
 * follows, lest two threads charge one change twice. Those calls tell or give back what nobody
 * uses: none of them waits for the GPU, and so for no thread of the program either. Calls that may
 * wait are made without it; `live` keeps the stock meanwhile. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pools/pools.h"
#include "virtual_memory/virtual_memory.h"

#define ASKED_NS 1000000ull

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vg_pool *pools;
static _Atomic bool any_pools;

void vg_pools_begin(void)
{
    pthread_mutex_lock(&lock);
}

void vg_pools_end(void)
{
    pthread_mutex_unlock(&lock);
}

bool vg_pool_size(const struct vg_pool *pool, uint64_t *bytes)
{
    cuuint64_t now = 0;
    CUresult result =
        pool->handle
            ? REAL(cuMemPoolGetAttribute)(pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &now)
            : REAL(cuDeviceGetGraphMemAttribute)(pool->device,
                                                 CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &now);
    *bytes = now;
    return result == CUDA_SUCCESS;
}

void vg_pool_refresh(struct vg_pool *pool)
{
    uint64_t now;
    if (pool->row < 0 || pool->destroyed || !vg_pool_size(pool, &now))
        return;
    if (now < pool->charged) {
        if (pool->borrowed)
            return; /* what it gave back may be about to be taken again, unreserved */
        vg_release(pool->row, pool->charged - now);
        vg_ranges_forget(pool);
    } else if (now > pool->charged) {
        vg_settle(pool->row, 0, now - pool->charged);
    }
    pool->charged = now;
}

/* Bytes that the driver may give back in the next call: those in stock above `keep`, or (NULL)
 * above the threshold that the program set for the pool. */
static uint64_t spare_bytes(const struct vg_pool *pool, const uint64_t *keep)
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
    if (likely(!atomic_load_explicit(&any_pools, memory_order_relaxed)))
        return;
    memset(expected->bytes, 0, sizeof expected->bytes);
    vg_pools_begin();
    for (struct vg_pool *pool = pools; pool; pool = pool->next) {
        uint64_t spare = only && pool->handle != only ? 0 : spare_bytes(pool, keep);
        if (spare) {
            vg_leave(pool->row, spare);
            expected->bytes[pool->row] += spare;
            expected->any = true;
        }
    }
    vg_pools_end();
}

void vg_pools_settle(const struct vg_expected *expected)
{
    vg_pools_refresh();
    for (int row = 0; expected->any && row < VG_DEVICES; row++)
        if (expected->bytes[row])
            vg_left(row, expected->bytes[row], 0);
}

bool vg_pools_are_due(void)
{
    static _Atomic uint64_t last;
    if (likely(!atomic_load_explicit(&any_pools, memory_order_relaxed)))
        return true; /* then they cost nothing */
    uint64_t now = vg_now_ns(), before = atomic_load_explicit(&last, memory_order_relaxed);
    return now >= before + ASKED_NS && atomic_compare_exchange_strong(&last, &before, now);
}

void vg_pools_refresh(void)
{
    vg_pending_frees_settle();
    vg_exports_settle();
    if (!atomic_load_explicit(&any_pools, memory_order_relaxed))
        return;
    vg_pools_begin();
    for (struct vg_pool *pool = pools; pool; pool = pool->next)
        if (pool->charged)
            vg_pool_refresh(pool);
    vg_pools_end();
}

static struct vg_pool *new_pool(CUmemoryPool handle, CUdevice device)
{
    struct vg_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->handle = handle;
    pool->device = device;
    pool->row = device >= 0 ? vg_row(device) : -1;
    pool->next = pools;
    pools = pool;
    atomic_store_explicit(&any_pools, true, memory_order_relaxed);
    vg_pool_refresh(pool); /* it may be older than us */
    return pool;
}

static struct vg_pool *find_pool(CUmemoryPool handle, CUdevice device)
{
    struct vg_pool *pool = pools;
    while (pool &&
           (pool->destroyed || pool->handle != handle || (!handle && pool->device != device)))
        pool = pool->next;
    return pool;
}

/* The GPU of a stock that was not made by this process: a default one, perhaps of another GPU than
 * the stream's. */
static CUdevice home_device(CUmemoryPool handle, CUdevice device)
{
    CUmemoryPool pool;
    for (int row = 0; handle && row < VG_DEVICES; row++) {
        CUdevice its = vg_row_device(row);
        if (its >= 0 && REAL(cuDeviceGetDefaultMemPool)(&pool, its) == CUDA_SUCCESS &&
            pool == handle)
            return its;
    }
    return device;
}

bool vg_pools_trim(int row)
{
    bool any = false;
    for (struct vg_pool *pool = pools; pool; pool = pool->next) {
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
    bool any = vg_pending_frees_settle_all();
    any |= vg_exports_settle();
    if (!atomic_load_explicit(&any_pools, memory_order_relaxed))
        return any;
    vg_pools_begin();
    any |= vg_pools_trim(row);
    vg_pools_end();
    return any;
}

#define BORROW_WAIT_NS 1000000000ull /* nobody takes so long to get what is in stock */

struct vg_pool *vg_pool_enter(CUmemoryPool handle, CUdevice device)
{
    vg_pools_begin();
    struct vg_pool *pool = find_pool(handle, device);
    if (!pool)
        pool = new_pool(handle, home_device(handle, device));
    if (pool) {
        pool->live++;
        for (uint64_t now = vg_now_ns(), end = now + BORROW_WAIT_NS; pool->borrowed && now < end;
             now = vg_now_ns()) {
            vg_pools_end();
            vg_sleep_until_ns(now + 20000);
            vg_pools_begin();
        }
        pool->drawing++;
        vg_pool_refresh(pool);
    }
    vg_pools_end();
    return pool;
}

void vg_pool_leave(struct vg_pool *pool)
{
    pool->live--;
    if (!pool->destroyed || pool->live)
        return;
    for (struct vg_pool **at = &pools; *at; at = &(*at)->next)
        if (*at == pool) {
            *at = pool->next;
            break;
        }
    if (pool->row >= 0)
        vg_release(pool->row, pool->charged);
    free(pool);
}

void vg_pool_note(CUmemoryPool handle, CUdevice device)
{
    vg_pools_begin();
    new_pool(handle, device);
    vg_pools_end();
}

CUresult vg_pool_destroy(CUmemoryPool handle)
{
    vg_pools_begin();
    struct vg_pool *pool = find_pool(handle, -1);
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
    vg_pools_end();
    CUresult result = REAL(cuMemPoolDestroy)(handle);
    vg_pools_begin();
    if (pool && result != CUDA_SUCCESS)
        pool->destroyed = false;
    if (pool)
        vg_pool_leave(pool);
    if (hint)
        vg_left(row, hint, 0);
    vg_pools_end();
    return result;
}

void vg_pools_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    while (pools) {
        struct vg_pool *pool = pools;
        pools = pool->next;
        free(pool);
    }
}

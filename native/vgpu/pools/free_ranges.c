/* What is free inside a stock, by the stream that may get it again without growth. The lock of all
 * stocks is held. */
#include "pools/pools.h"

void vg_range_freed(struct vg_pool *pool, uint64_t start, uint64_t end, CUstream stream)
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

bool vg_range_taken(struct vg_pool *pool, uint64_t start, uint64_t end)
{
    bool known = false;
    for (unsigned int i = 0; i < pool->n_ranges;) {
        struct vg_range r = pool->range[i];
        if (start >= r.end || end <= r.start) {
            i++;
            continue;
        }
        known |= r.start <= start && end <= r.end;
        pool->range[i] = pool->range[--pool->n_ranges];
        if (r.start < start)
            vg_range_freed(pool, r.start, start, r.stream);
        if (r.end > end)
            vg_range_freed(pool, end, r.end, r.stream);
        i = 0;
    }
    atomic_fetch_add(&pool->changes, 1);
    return known;
}

void vg_ranges_forget(struct vg_pool *pool)
{
    pool->n_ranges = 0;
    atomic_fetch_add(&pool->changes, 1);
}

bool vg_range_fits(const struct vg_pool *pool, uint64_t bytes, CUstream stream)
{
    cuuint64_t used;
    if (!pool->handle) /* graphs get their memory mapped, wherever it lies */
        return REAL(cuDeviceGetGraphMemAttribute)(pool->device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                                                  &used) == CUDA_SUCCESS &&
               used <= pool->charged && pool->charged - used >= bytes;
    for (unsigned int i = 0; i < pool->n_ranges; i++)
        if (pool->range[i].stream == stream && pool->range[i].end - pool->range[i].start >= bytes)
            return true;
    return false;
}

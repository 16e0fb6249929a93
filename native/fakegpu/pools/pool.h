/* Memory pools. With fg_mutex held, but for fg_pools_synchronized. */
#ifndef FG_POOL_H
#define FG_POOL_H
#include "memory/ranges.h"
#include "memory/space.h"

struct fg_segment {
    struct fg_segment *next;
    uint64_t base, bytes;
};
struct fg_pool {
    uint64_t magic;
    struct fg_pool *next;
    int gpu; /* -1: of the host */
    struct fg_segment *segments;
    struct fg_space space;
    uint64_t reserved, reserved_high, used, used_high, threshold;
    uint64_t live;  /* allocations */
    uint64_t limit; /* maxSize; 0: none */
    int reuse[4];
    bool doomed, imported;
    CUmemPoolProps properties;
    uint64_t export_id;
};
#define FG_POOL_MAGIC 0x6c6f6f7070756746ull
struct fg_pool *fg_pool_of(CUmemoryPool handle); /* NULL: not a live pool */
struct fg_pool *fg_pool_new(int gpu, const CUmemPoolProps *properties);
struct fg_pool *fg_device_pool(int gpu); /* device_pool.c: the present one of a GPU */
/* no device chooses it now; false: a standard one */
bool fg_device_pool_forget(const struct fg_pool *pool);
CUresult fg_pool_take(struct fg_pool *pool, uint64_t bytes, struct fg_range **range);
CUresult fg_pool_free(struct fg_range *range);
/* Gives back segments without an allocation until no more than `keep` bytes are reserved; true:
 * some. */
bool fg_pool_trim(struct fg_pool *pool, uint64_t keep);
/* one that is destroyed goes with its last allocation */
void fg_pool_end_if_unused(struct fg_pool *pool);
void fg_pools_synchronized(void); /* the host waited for GPU work: pools let go what they may */
#endif

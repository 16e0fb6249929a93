/* Memory that belongs to a context. With fg_mutex held. */
#ifndef FG_HEAP_H
#define FG_HEAP_H
#include "memory/ranges.h"

/* kind: FG_DEVICE or FG_MANAGED; on_host (managed memory only): it lies in the host's. */
CUresult fg_heap_allocate(struct fg_context *context, uint64_t bytes, enum fg_kind kind,
                          bool on_host, struct fg_range **range);
/* Managed memory that lies in the host's goes to its GPU, where there is room for it. */
void fg_managed_to_gpu(struct fg_range *range);
static inline bool fg_is_on_host(const struct fg_range *range)
{
    return range->kind == FG_MANAGED && !range->charged;
}
CUresult fg_heap_free(struct fg_range *range); /* of FG_DEVICE */
/* Makes the memory under a range one that other processes can hold. The size exported; 0: no
 * room. */
uint64_t fg_range_share(struct fg_range *range, int *shared, uint64_t *id, uint64_t *offset);
void fg_memory_context_gone(struct fg_context *context);
#endif

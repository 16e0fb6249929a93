/* The heap of a context. Up to small_bytes an allocation shares a block (2 MiB) of its context with
 * others, at 512 B steps; a block is the GPU's again when its last allocation is freed. Above,
 * it has whole blocks of its own. */
#define _GNU_SOURCE
#include "memory/heap.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "clock/clock.h"
#include "memory/gpu_memory.h"
#include "memory/page_locked.h"
#include "memory/space.h"
#include "state/ledger.h"
#include "state/process_table.h"

struct fg_block {
    struct fg_block *next;
    uint64_t base, bytes;
    unsigned live;
    struct fg_space space;
    int shared; /* exported by IPC: index in fg_state->shared */
    uint64_t shared_id;
};

static struct fg_block *new_block(struct fg_context *context)
{
    const struct fg_profile *profile = &fg_state->gpu[context->gpu].profile;
    struct fg_block *block = calloc(1, sizeof *block);
    if (!block || fg_take_gpu_memory(context->gpu, profile->block_bytes)) {
        free(block);
        return NULL;
    }
    block->bytes = profile->block_bytes;
    block->shared = -1;
    block->base = fg_va_reserve(block->bytes, block->bytes);
    fg_space_add(&block->space, block->base, block->bytes);
    block->next = context->blocks;
    context->blocks = block;
    return block;
}

static void end_block(struct fg_context *context, struct fg_block *block)
{
    struct fg_block **at = &context->blocks;
    while (*at != block)
        at = &(*at)->next;
    *at = block->next;
    if (block->shared >= 0)
        fg_shared_drop(block->shared, block->shared_id);
    else
        fg_uncharge(context->gpu, block->bytes);
    fg_va_release(block->base, block->bytes);
    fg_space_end(&block->space);
    free(block);
}

CUresult fg_heap_free(struct fg_range *range)
{
    struct fg_context *context = range->context;
    struct fg_block *block = range->owner;
    uint64_t base = range->base, charged = range->charged;
    if (charged) {
        if (range->shared >= 0)
            fg_shared_drop(range->shared, range->shared_id);
        else
            fg_uncharge(range->gpu, charged);
        fg_va_release(base, charged);
    } else {
        uint64_t align = fg_state->gpu[range->gpu].profile.align_bytes;
        fg_space_add(&block->space, base, fg_round_up(range->size, align));
    }
    fg_range_end(range);
    if (!charged && --block->live == 0)
        end_block(context, block);
    return CUDA_SUCCESS;
}

static uint64_t managed_size(const struct fg_range *range)
{
    return fg_round_up(range->size, fg_state->gpu[range->gpu].profile.block_bytes);
}

static void count_on_host(int64_t bytes)
{
    fg_lock();
    fg_state->process[fg_own_process()].managed_host += (uint64_t)bytes;
    fg_unlock();
}

static CUresult free_managed(struct fg_range *range)
{
    uint64_t base = range->base, size = managed_size(range);
    if (fg_is_on_host(range))
        count_on_host(-(int64_t)size);
    else
        fg_uncharge_managed(range->gpu, size);
    fg_range_end(range);
    munmap((void *)base, size);
    return CUDA_SUCCESS;
}

void fg_managed_to_gpu(struct fg_range *range)
{
    uint64_t size = managed_size(range);
    if (!fg_is_on_host(range) || fg_take_managed_memory(range->gpu, size))
        return;
    range->charged = size;
    count_on_host(-(int64_t)size);
}

static CUresult take_small(struct fg_context *context, uint64_t bytes, enum fg_kind kind,
                           struct fg_range **range)
{
    uint64_t align = fg_state->gpu[context->gpu].profile.align_bytes,
             size = fg_round_up(bytes, align);
    struct fg_block *block = context->blocks;
    uint64_t base = 0;
    for (; block; block = block->next)
        if (block->space.free >= size && (base = fg_space_take(&block->space, size, align)))
            break;
    if (!block) {
        block = new_block(context);
        if (!block)
            return CUDA_ERROR_OUT_OF_MEMORY;
        base = fg_space_take(&block->space, size, align);
    }
    *range = fg_range_new(kind, context->gpu, context, base, bytes);
    if (!*range)
        abort();
    block->live++;
    (*range)->owner = block;
    (*range)->free = fg_heap_free;
    return CUDA_SUCCESS;
}

/* The host uses managed memory as its own. */
static uint64_t map_managed(uint64_t size, uint64_t align)
{
    void *mapped = mmap(NULL, size + align, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return 0;
    uint64_t from = (uint64_t)mapped, base = fg_round_up(from, align);
    if (base > from)
        munmap(mapped, base - from);
    if (from + align > base)
        munmap((void *)(base + size), from + align - base);
    return base;
}

CUresult fg_heap_allocate(struct fg_context *context, uint64_t bytes, enum fg_kind kind,
                          bool on_host, struct fg_range **range)
{
    const struct fg_profile *profile = &fg_state->gpu[context->gpu].profile;
    fg_clock_spend(0);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > 1ull << 46)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (bytes <= profile->small_bytes && kind != FG_MANAGED)
        return take_small(context, bytes, kind, range);
    uint64_t size = fg_round_up(bytes, profile->block_bytes), base;
    bool managed = kind == FG_MANAGED;
    CUresult result =
        on_host ? CUDA_SUCCESS
                : (managed ? fg_take_managed_memory : fg_take_gpu_memory)(context->gpu, size);
    if (result)
        return result;
    base = (managed ? map_managed : fg_va_reserve)(size, profile->block_bytes);
    *range = base ? fg_range_new(kind, context->gpu, context, base, bytes) : NULL;
    if (!*range) {
        if (!on_host)
            (managed ? fg_uncharge_managed : fg_uncharge)(context->gpu, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*range)->charged = on_host ? 0 : size;
    if (on_host)
        count_on_host((int64_t)size);
    (*range)->free = managed ? free_managed : fg_heap_free;
    return CUDA_SUCCESS;
}

uint64_t fg_range_share(struct fg_range *range, int *shared, uint64_t *id, uint64_t *offset)
{
    struct fg_block *block = range->charged ? NULL : range->owner;
    int *index = block ? &block->shared : &range->shared;
    uint64_t *number = block ? &block->shared_id : &range->shared_id;
    uint64_t bytes = block ? block->bytes : range->charged;
    if (*index < 0)
        *index = fg_shared_make(range->gpu, bytes, number);
    *shared = *index;
    *id = *number;
    *offset = block ? range->base - block->base : 0;
    return *index < 0 ? 0 : bytes;
}

void fg_memory_context_gone(struct fg_context *context)
{
    for (struct fg_range *range = context->ranges, *next; range; range = next) {
        next = range->next;
        if (range->kind == FG_HOST || range->kind == FG_REGISTERED)
            fg_page_locked_end(range);
        else if (range->free)
            fg_range_free(range);
    }
}

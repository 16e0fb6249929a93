#define _GNU_SOURCE
#include "memory/ranges.h"

#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "clock/clock.h"
#include "memory/space.h"

/* where no process maps anything: a host that reads here faults */
#define VA_BASE 0x030000000000ull
#define VA_BYTES (64ull << 40)
#define LOW_BASE (1ull << 30) /* for the ABI of CUDA 3.1 */
#define LOW_BYTES (2ull << 30)

static struct fg_space addresses, low_addresses;
static void *ranges; /* tsearch tree by address */
static uint64_t next_id = 1;

/* ---- addresses ------------------------------------------------------------------------------- */

static void begin(void)
{
    static bool begun;
    if (!begun)
        fg_space_add(&addresses, VA_BASE, VA_BYTES);
    begun = true;
}

uint64_t fg_va_reserve(uint64_t bytes, uint64_t align)
{
    begin();
    return fg_space_take(&addresses, bytes, align);
}

bool fg_va_reserve_at(uint64_t at, uint64_t bytes)
{
    begin();
    return fg_space_take_at(&addresses, at, bytes);
}

uint64_t fg_va_reserve_low(uint64_t bytes)
{
    if (!low_addresses.gap)
        fg_space_add(&low_addresses, LOW_BASE, LOW_BYTES);
    return fg_space_take(&low_addresses, bytes, 2 << 20);
}

void fg_va_release(uint64_t at, uint64_t bytes)
{
    fg_space_add(at < LOW_BASE + LOW_BYTES ? &low_addresses : &addresses, at, bytes);
}

bool fg_va_ours(uint64_t address)
{
    return address >= VA_BASE && address < VA_BASE + VA_BYTES;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Ranges never overlap: two that do are the same for the tree, so that an address finds its
 * range. */
static int compare(const void *left, const void *right)
{
    const struct fg_range *a = left, *b = right;
    return a->base + a->size <= b->base ? -1 : b->base + b->size <= a->base;
}

struct fg_range *fg_range_overlapping(uint64_t base, uint64_t size)
{
    struct fg_range key = {.base = base, .size = size};
    struct fg_range **found = tfind(&key, &ranges, compare);
    return found ? *found : NULL;
}

struct fg_range *fg_range_at(uint64_t address)
{
    return fg_range_overlapping(address, 1);
}

struct fg_range *fg_range_new(enum fg_kind kind, int gpu, struct fg_context *context, uint64_t base,
                              uint64_t size)
{
    struct fg_range *range = calloc(1, sizeof *range);
    if (!range)
        return NULL;
    *range = (struct fg_range){.base = base,
                               .size = size,
                               .kind = kind,
                               .gpu = gpu,
                               .context = context,
                               .id = next_id++,
                               .shared = -1,
                               .own = {.bytes = size}};
    range->content = &range->own;
    range->block_id = range->id;
    struct fg_range **kept = tsearch(range, &ranges, compare);
    if (!kept || *kept != range) { /* overlaps another: registered host memory only */
        free(range);
        return NULL;
    }
    if (context) {
        range->next = context->ranges;
        if (range->next)
            range->next->previous = range;
        context->ranges = range;
    }
    return range;
}

void fg_range_end(struct fg_range *range)
{
    tdelete(range, &ranges, compare);
    if (range->previous)
        range->previous->next = range->next;
    else if (range->context)
        range->context->ranges = range->next;
    if (range->next)
        range->next->previous = range->previous;
    if (range->own.data)
        munmap(range->own.data, range->own.bytes);
    free(range);
}

CUresult fg_range_free(struct fg_range *range)
{
    fg_clock_spend(0);
    return range->free ? range->free(range) : CUDA_ERROR_INVALID_VALUE;
}

CUresult fg_memory_free(CUdeviceptr address)
{
    struct fg_context *context;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_need_context(&context);
    if (!result && address) {
        struct fg_range *range = fg_range_at(address);
        bool freeable = range && range->base == address;
        result = freeable ? fg_range_free(range) : CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

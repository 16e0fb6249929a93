/* Device memory as cuMemAlloc gives it. Up to small_bytes an allocation shares a block (2 MiB) of its
 * context with others, at 512 B steps; a block is the GPU's again when its last allocation is freed.
 * Above, it has whole blocks of its own. */
#define _GNU_SOURCE
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "driver/core.h"
#include "controls/faults.h"
#include "memory/memory.h"
#include "streams/work.h"

#define VA_BASE 0x030000000000ull     /* where no process maps anything: a host that reads here faults */
#define VA_BYTES (64ull << 40)
#define LOW_BASE (1ull << 30)          /* for the ABI of CUDA 3.1 */
#define LOW_BYTES (2ull << 30)

struct fg_block {
    struct fg_block *next;
    uint64_t base, bytes;
    unsigned live;
    struct fg_space space;
    int shared;                       /* exported by IPC: index in fg_state->shared */
    uint64_t shared_id;
};
static struct fg_space addresses, low_addresses;
static void *ranges;                  /* tsearch tree by address */
static uint64_t next_id = 1;

/* ---- addresses and ranges ------------------------------------------------------------------------ */

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

void fg_va_release(uint64_t at, uint64_t bytes)
{
    fg_space_add(at < LOW_BASE + LOW_BYTES ? &low_addresses : &addresses, at, bytes);
}

bool fg_va_ours(uint64_t address) { return address >= VA_BASE && address < VA_BASE + VA_BYTES; }

/* Ranges never overlap: two that do are the same for the tree, so that an address finds its range. */
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

struct fg_range *fg_range_at(uint64_t address) { return fg_range_overlapping(address, 1); }

struct fg_range *fg_range_new(enum fg_kind kind, int gpu, struct fg_context *context, uint64_t base, uint64_t size)
{
    struct fg_range *range = calloc(1, sizeof *range);
    if (!range)
        return NULL;
    *range = (struct fg_range){.base = base, .size = size, .kind = kind, .gpu = gpu, .context = context,
                               .id = next_id++, .shared = -1};
    struct fg_range **kept = tsearch(range, &ranges, compare);
    if (!kept || *kept != range) {     /* overlaps another: registered host memory only */
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
    fg_range_content_end(range);
    free(range);
}

static CUresult grab(int gpu, uint64_t bytes, uint64_t largest, int (*charge)(int, uint64_t))
{
    if (fg_fault_memory(gpu, largest))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!charge(gpu, bytes) || (fg_pools_trim(gpu) && !charge(gpu, bytes)))
        return CUDA_SUCCESS;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fg_take_gpu_memory(int gpu, uint64_t bytes) { return grab(gpu, bytes, bytes, fg_charge); }

CUresult fg_take_gpu_memory_in_pieces(int gpu, uint64_t bytes, uint64_t largest) { return grab(gpu, bytes, largest, fg_charge); }

/* ---- the heap of a context -------------------------------------------------------------------------- */

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

static CUresult take_small(struct fg_context *context, uint64_t bytes, enum fg_kind kind, struct fg_range **range)
{
    uint64_t align = fg_state->gpu[context->gpu].profile.align_bytes, size = fg_round_up(bytes, align);
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

CUresult fg_heap_allocate(struct fg_context *context, uint64_t bytes, enum fg_kind kind, struct fg_range **range)
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
    CUresult result = grab(context->gpu, size, size, managed ? fg_charge_managed : fg_charge);
    if (result)
        return result;
    if (managed) {
        base = map_managed(size, profile->block_bytes);
    } else {
        base = fg_va_reserve(size, profile->block_bytes);
    }
    *range = base ? fg_range_new(kind, context->gpu, context, base, bytes) : NULL;
    if (!*range) {
        (managed ? fg_uncharge_managed : fg_uncharge)(context->gpu, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*range)->charged = size;
    return CUDA_SUCCESS;
}

CUresult fg_range_free(struct fg_range *range)
{
    struct fg_context *context = range->context;
    struct fg_block *block = range->owner;
    uint64_t base = range->base, charged = range->charged, size = range->size;
    fg_clock_spend(0);
    switch (range->kind) {
    case FG_DEVICE:
        if (charged) {
            if (range->shared >= 0)
                fg_shared_drop(range->shared, range->shared_id);
            else
                fg_uncharge(range->gpu, charged);
            fg_va_release(base, charged);
        } else {
            fg_space_add(&block->space, base, fg_round_up(size, fg_state->gpu[range->gpu].profile.align_bytes));
        }
        fg_range_end(range);
        if (!charged && --block->live == 0)
            end_block(context, block);
        return CUDA_SUCCESS;
    case FG_MANAGED:
        fg_uncharge_managed(range->gpu, charged);
        fg_range_end(range);
        munmap((void *)base, charged);
        return CUDA_SUCCESS;
    case FG_POOLED:
        return fg_pool_free(range);
    case FG_GRAPHED:
        return fg_graph_memory_free(base) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case FG_IMPORTED:
        if (range->shared >= 0)
            fg_shared_drop(range->shared, range->shared_id);
        fg_range_end(range);
        fg_va_release(base, fg_round_up(size, 2 << 20));
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Makes the memory under a range one that other processes can hold. The size exported; 0: no room. */
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
        if (range->kind <= FG_MANAGED || (range->kind == FG_IMPORTED))
            fg_range_free(range);
        else if (range->kind == FG_HOST || range->kind == FG_REGISTERED)
            fg_page_locked_end(range);
    }
}

/* ---- the calls ---------------------------------------------------------------------------------------- */

static CUresult allocate(CUdeviceptr *out, size_t bytes, enum fg_kind kind)
{
    struct fg_context *context;
    struct fg_range *range;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = fg_capture_forbids();
    if (result)
        return result;
    pthread_mutex_lock(&fg_mutex);
    result = fg_need_context(&context);
    if (!result)
        result = fg_heap_allocate(context, bytes, kind, &range);
    if (!result)
        *out = range->base;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemAlloc_v2)(CUdeviceptr *out, size_t bytes) { return allocate(out, bytes, FG_DEVICE); }

CUresult FG(cuMemAllocManaged)(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(out, bytes, FG_MANAGED);
}

CUresult FG(cuMemAllocPitch_v2)(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    struct fg_context *context = fg_current_context();
    if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    size_t row = fg_round_up(width, fg_state->gpu[context->gpu].profile.pitch_align), bytes;
    if (__builtin_mul_overflow(row, height, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = allocate(out, bytes, FG_DEVICE);
    if (!result)
        *pitch = row;
    return result;
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

CUresult FG(cuMemGetInfo)(unsigned int *free_bytes, unsigned int *total)
{
    size_t left, all;
    CUresult result = FG(cuMemGetInfo_v2)(&left, &all);
    if (!result && (!free_bytes || !total))
        return CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        *free_bytes = left > UINT32_MAX ? UINT32_MAX : (unsigned)left;
        *total = all > UINT32_MAX ? UINT32_MAX : (unsigned)all;
    }
    return result;
}

/* The first ABI has 32-bit addresses: its memory lies below 4 GiB, never in a shared block. */
CUresult FG(cuMemAlloc)(CUdeviceptr_v1 *out, unsigned int bytes)
{
    struct fg_context *context;
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_need_context(&context);
    if (!result) {
        uint64_t size = fg_round_up(bytes, 2 << 20), base = 0;
        if (!low_addresses.gap)
            fg_space_add(&low_addresses, LOW_BASE, LOW_BYTES);
        result = fg_take_gpu_memory(context->gpu, size);
        if (!result) {
            base = fg_space_take(&low_addresses, size, 2 << 20);
            struct fg_range *range = base ? fg_range_new(FG_DEVICE, context->gpu, context, base, bytes) : NULL;
            if (range) {
                range->charged = size;
                *out = (CUdeviceptr_v1)base;
            } else {
                fg_uncharge(context->gpu, size);
                result = CUDA_ERROR_OUT_OF_MEMORY;
            }
        }
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemAllocPitch)(CUdeviceptr_v1 *out, unsigned int *pitch, unsigned int width, unsigned int height,
                             unsigned int element)
{
    if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t row = fg_round_up(width, 512), bytes = row * height;
    CUresult result = bytes > UINT32_MAX ? CUDA_ERROR_OUT_OF_MEMORY : FG(cuMemAlloc)(out, (unsigned)bytes);
    if (!result)
        *pitch = (unsigned)row;
    return result;
}

/* It waits for all work that could still use the memory. */
CUresult FG(cuMemFree_v2)(CUdeviceptr address)
{
    struct fg_context *context = fg_current_context();
    CUresult result = fg_capture_forbids();
    if (result)
        return result;
    if (context && !fg_engine_context_idle(context->engine))
        fg_engine_context_drain(context->engine);
    return fg_memory_free(address);
}
CUresult FG(cuMemFree)(CUdeviceptr_v1 address) { return FG(cuMemFree_v2)(address); }

CUresult FG(cuMemGetInfo_v2)(size_t *free_bytes, size_t *total)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    if (!free_bytes || !total)
        return CUDA_ERROR_INVALID_VALUE;
    fg_lock();
    fg_sweep_dead();                        /* what has ended is free, reaped or not */
    struct fg_gpu *gpu = &fg_state->gpu[context->gpu];
    struct fg_tag *tag = &fg_state->tag[fg_state->process[fg_own_process()].tag];
    uint64_t all = gpu->profile.memory_bytes, left = all - gpu->used;
    uint64_t limit = tag->hard_limit[context->gpu], used = fg_tag_limited_bytes(context->gpu, tag);
    if (limit && limit < all) {
        all = limit;
        left = used >= limit ? 0 : left < limit - used ? left : limit - used;
    }
    fg_unlock();
    *free_bytes = left;
    *total = all;
    return CUDA_SUCCESS;
}

CUresult FG(cuMemGetAddressRange_v2)(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    if (range && base)
        *base = range->base;
    if (range && size)
        *size = range->size;
    pthread_mutex_unlock(&fg_mutex);
    return range ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

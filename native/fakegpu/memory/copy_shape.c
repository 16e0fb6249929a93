#include "memory/copy_shape.h"

#include "memory/content.h"
#include "memory/heap.h"
#include "memory/ranges.h"
#include "state/engine_state.h"

static bool is_host(uint64_t address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    bool is = !range || range->kind == FG_HOST || fg_is_on_host(range);
    pthread_mutex_unlock(&fg_mutex);
    return is;
}
bool fg_address_pinned(uint64_t address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    bool is = range && (range->kind == FG_HOST || range->kind == FG_MANAGED);
    pthread_mutex_unlock(&fg_mutex);
    return is;
}

/* Address of an end's first byte; 0: an array, whose content is not kept. */
static uint64_t end_of(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y,
                       size_t z, size_t pitch, size_t height)
{
    if (type == CU_MEMORYTYPE_ARRAY)
        return 0;
    return (type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device) + x +
           (y + z * height) * pitch;
}
uint64_t fg_copy_source(const CUDA_MEMCPY3D *s)
{
    return end_of(s->srcMemoryType, s->srcHost, s->srcDevice, s->srcXInBytes, s->srcY, s->srcZ,
                  s->srcPitch, s->srcHeight);
}
uint64_t fg_copy_target(const CUDA_MEMCPY3D *s)
{
    return end_of(s->dstMemoryType, s->dstHost, s->dstDevice, s->dstXInBytes, s->dstY, s->dstZ,
                  s->dstPitch, s->dstHeight);
}

static bool fits(uint64_t at, const CUDA_MEMCPY3D *s, size_t pitch, size_t height)
{
    return !at || is_host(at) ||
           fg_address_valid(at,
                            ((s->Depth - 1) * height + s->Height - 1) * pitch + s->WidthInBytes);
}

uint32_t fg_copy_kind(const CUDA_MEMCPY3D *s)
{
    uint64_t from = fg_copy_source(s), to = fg_copy_target(s);
    if (s->srcMemoryType == CU_MEMORYTYPE_DEVICE && !fg_address_valid(from, 1))
        return FG_OP_NONE;
    if (s->dstMemoryType == CU_MEMORYTYPE_DEVICE && !fg_address_valid(to, 1))
        return FG_OP_NONE;
    if (!fits(from, s, s->srcPitch, s->srcHeight) || !fits(to, s, s->dstPitch, s->dstHeight))
        return FG_OP_NONE;
    bool from_host = from && is_host(from), to_host = to && is_host(to);
    return to_host ? FG_OP_TO_HOST : from_host ? FG_OP_TO_DEVICE : FG_OP_FILL;
}

static int gpu_at(uint64_t address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = address ? fg_range_at(address) : NULL;
    int gpu = range ? range->gpu : -1;
    pthread_mutex_unlock(&fg_mutex);
    return gpu;
}

uint32_t fg_copy_route(const CUDA_MEMCPY3D *s)
{
    if (fg_copy_kind(s) != FG_OP_FILL)
        return 0;
    int from = gpu_at(fg_copy_source(s)), to = gpu_at(fg_copy_target(s));
    return from < 0 || to < 0 || from == to ? 0 : fg_route(from, to);
}

void fg_copy_move(const CUDA_MEMCPY3D *s)
{
    uint64_t from = fg_copy_source(s), to = fg_copy_target(s);
    for (size_t z = 0; z < s->Depth && from && to; z++)
        for (size_t y = 0; y < s->Height; y++)
            fg_copy_bytes(to + (z * s->dstHeight + y) * s->dstPitch,
                          from + (z * s->srcHeight + y) * s->srcPitch, s->WidthInBytes);
}

/* cuMemAlloc and cuMemFree with their kin, and what is left of a GPU's memory. */
#include "clock/clock.h"
#include "driver/capture_mode.h"
#include "engine/engine.h"
#include "memory/gpu_memory.h"
#include "memory/heap.h"
#include "memory/space.h"
#include "state/ledger.h"
#include "state/mig.h"
#include "state/process_table.h"

static CUresult allocate(CUdeviceptr *out, size_t bytes, enum fg_kind kind, bool on_host)
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
        result = fg_heap_allocate(context, bytes, kind, on_host, &range);
    if (!result)
        *out = range->base;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemAlloc_v2)(CUdeviceptr *out, size_t bytes)
{
    return allocate(out, bytes, FG_DEVICE, false);
}

CUresult FG(cuMemAllocManaged)(CUdeviceptr *out, size_t bytes, unsigned int flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(out, bytes, FG_MANAGED, flags == CU_MEM_ATTACH_HOST);
}

CUresult FG(cuMemAllocPitch_v2)(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                                unsigned int element)
{
    struct fg_context *context = fg_current_context();
    if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    size_t row = fg_round_up(width, fg_state->gpu[context->gpu].profile.pitch_align), bytes;
    if (__builtin_mul_overflow(row, height, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = allocate(out, bytes, FG_DEVICE, false);
    if (!result)
        *pitch = row;
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

CUresult FG(cuMemGetInfo_v2)(size_t *free_bytes, size_t *total)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    if (!free_bytes || !total)
        return CUDA_ERROR_INVALID_VALUE;
    fg_lock();
    fg_sweep_dead(); /* what has ended is free, reaped or not */
    struct fg_gpu *gpu = &fg_state->gpu[context->gpu];
    struct fg_tag *tag = &fg_state->tag[fg_state->process[fg_own_process()].tag];
    uint64_t all = gpu->profile.memory_bytes, left = all - gpu->used;
    const struct fg_mig *mig = fg_instance();
    if (mig) {
        all = mig->memory_bytes;
        left = all - fg_mig_used(context->gpu, mig->gi);
    }
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

/* ---- the first ABI --------------------------------------------------------------------------- */

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
        result = fg_take_gpu_memory(context->gpu, size);
        if (!result) {
            base = fg_va_reserve_low(size);
            struct fg_range *range =
                base ? fg_range_new(FG_DEVICE, context->gpu, context, base, bytes) : NULL;
            if (range) {
                range->charged = size;
                range->free = fg_heap_free;
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

CUresult FG(cuMemAllocPitch)(CUdeviceptr_v1 *out, unsigned int *pitch, unsigned int width,
                             unsigned int height, unsigned int element)
{
    if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t row = fg_round_up(width, 512), bytes = row * height;
    CUresult result =
        bytes > UINT32_MAX ? CUDA_ERROR_OUT_OF_MEMORY : FG(cuMemAlloc)(out, (unsigned)bytes);
    if (!result)
        *pitch = (unsigned)row;
    return result;
}

CUresult FG(cuMemFree)(CUdeviceptr_v1 address)
{
    return FG(cuMemFree_v2)(address);
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

/* Page-locked host memory: allocated, or registered. It costs no GPU memory; its bytes are
 * counted in the process's row. */
#define _GNU_SOURCE
#include "memory/page_locked.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "memory/space.h"
#include "state/process_table.h"

static void count(int64_t bytes)
{
    fg_lock();
    fg_state->process[fg_own_process()].host_bytes += (uint64_t)bytes;
    fg_unlock();
}

static CUresult allocate(void **out, size_t bytes, unsigned flags)
{
    struct fg_context *context;
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_need_context(&context);
    if (!result) {
        uint64_t size = fg_round_up(bytes, 4096);
        void *mapped = size < bytes ? MAP_FAILED
                                    : mmap(NULL, size, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct fg_range *range = NULL;
        if (mapped != MAP_FAILED)
            range = fg_range_new(FG_HOST, context->gpu, context, (uint64_t)mapped, bytes);
        if (range) {
            range->flags = flags;
            count((int64_t)bytes);
            *out = mapped;
        } else {
            result = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

void fg_page_locked_end(struct fg_range *range)
{
    uint64_t base = range->base, size = range->size;
    bool ours = range->kind == FG_HOST;
    count(-(int64_t)size);
    fg_range_end(range);
    if (ours)
        munmap((void *)base, fg_round_up(size, 4096));
}

CUresult FG(cuMemAllocHost_v2)(void **out, size_t bytes)
{
    return allocate(out, bytes, 0);
}
CUresult FG(cuMemAllocHost)(void **out, unsigned int bytes)
{
    return allocate(out, bytes, 0);
}

CUresult FG(cuMemHostAlloc)(void **out, size_t bytes, unsigned int flags)
{
    return flags & ~7u ? CUDA_ERROR_INVALID_VALUE : allocate(out, bytes, flags);
}

static CUresult finish(void *address, enum fg_kind kind, CUresult otherwise)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at((uint64_t)address);
    CUresult result =
        range && range->base == (uint64_t)address && range->kind == kind ? CUDA_SUCCESS : otherwise;
    if (!result)
        fg_page_locked_end(range);
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemFreeHost)(void *address)
{
    return finish(address, FG_HOST, CUDA_ERROR_INVALID_VALUE);
}

CUresult FG(cuMemHostRegister_v2)(void *address, size_t bytes, unsigned int flags)
{
    struct fg_context *context;
    if (!address || !bytes || flags & ~0xfu)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_need_context(&context);
    if (!result) {
        struct fg_range *range =
            fg_range_new(FG_REGISTERED, context->gpu, context, (uint64_t)address, bytes);
        if (range) {
            range->flags = flags;
            count((int64_t)bytes);
        } else {
            result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemHostRegister)(void *address, size_t bytes, unsigned int flags)
{
    return FG(cuMemHostRegister_v2)(address, bytes, flags);
}

CUresult FG(cuMemHostUnregister)(void *address)
{
    return finish(address, FG_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

static struct fg_range *find_host(void *address)
{
    struct fg_range *range = fg_range_at((uint64_t)address);
    return range && (range->kind == FG_HOST || range->kind == FG_REGISTERED) ? range : NULL;
}

CUresult FG(cuMemHostGetDevicePointer_v2)(CUdeviceptr *out, void *address, unsigned int flags)
{
    pthread_mutex_lock(&fg_mutex);
    bool known = find_host(address) != NULL;
    pthread_mutex_unlock(&fg_mutex);
    if (!out || flags || !known)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)address;
    return CUDA_SUCCESS;
}

CUresult FG(cuMemHostGetFlags)(unsigned int *flags, void *address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = find_host(address);
    if (range && flags)
        *flags = range->flags;
    pthread_mutex_unlock(&fg_mutex);
    return range && flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Stream-ordered allocation: cuMemAllocAsync and cuMemFreeAsync. */
#include "clock/clock.h"
#include "graphs/graph_memory.h"
#include "pools/pool.h"
#include "streams/stream.h"

CUresult FG(cuMemAllocFromPoolAsync)(CUdeviceptr *out, size_t bytes, CUmemoryPool handle,
                                     CUstream stream)
{
    struct fg_stream *ordered;
    struct fg_range *range;
    CUresult result = fg_stream_of(stream, &ordered);
    if (result)
        return result;
    if (ordered->capture)
        return out ? fg_capture_memory_alloc(ordered, bytes, out) : CUDA_ERROR_INVALID_VALUE;
    fg_clock_spend(0);
    pthread_mutex_lock(&fg_mutex);
    struct fg_pool *pool = fg_pool_of(handle);
    result = pool && out ? fg_pool_take(pool, bytes, &range) : CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *out = range->base;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemAllocAsync)(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    struct fg_context *context;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_need_context(&context);
    if (!result) {
        struct fg_pool *pool = fg_device_pool(context->gpu);
        result = FG(cuMemAllocFromPoolAsync)(out, bytes, (CUmemoryPool)pool, stream);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemFreeAsync)(CUdeviceptr address, CUstream stream)
{
    struct fg_stream *ordered;
    CUresult result = fg_stream_of(stream, &ordered);
    if (result)
        return result;
    return ordered->capture ? fg_capture_memory_free(ordered, address) : fg_memory_free(address);
}

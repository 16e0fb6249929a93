/* Waiting for streams and contexts. What memory pools let go after it is the entry points' affair
 * (native/tools/fake_entries.py). */
#include <stdlib.h>

#include "driver/capture_mode.h"
#include "engine/engine.h"
#include "streams/capture.h"
#include "streams/stream.h"

CUresult FG(cuStreamSynchronize)(CUstream handle)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (result)
        return result;
    if (stream->capture)
        return fg_capture_break(stream);
    result = fg_capture_check(stream);
    if (result)
        return result;
    fg_engine_stream_wait(stream->engine, fg_engine_stream_tail(stream->engine));
    if (stream->is_default && !fg_per_thread && handle != CU_STREAM_PER_THREAD) {
        /* The legacy stream stands for all blocking streams of the context. */
        struct last {
            int engine;
            uint64_t tail;
        } *list = calloc(FG_ENGINE_STREAMS, sizeof *list);
        int n = 0;
        pthread_mutex_lock(&fg_mutex);
        for (struct fg_stream *each = fg_streams_of(stream->context);
             each && list && n < FG_ENGINE_STREAMS; each = each->next)
            if (!(each->flags & CU_STREAM_NON_BLOCKING) && each != stream) {
                list[n].tail = fg_engine_stream_tail(each->engine);
                list[n++].engine = each->engine;
            }
        pthread_mutex_unlock(&fg_mutex);
        for (int i = 0; i < n; i++)
            fg_engine_stream_wait(list[i].engine, list[i].tail);
        free(list);
    }
    return fg_gpu_status(stream->context->gpu);
}

CUresult FG(cuStreamQuery)(CUstream handle)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (result)
        return result;
    if (stream->capture)
        return fg_capture_break(stream);
    result = fg_capture_check(stream);
    if (result)
        return result;
    if (!fg_engine_stream_done(stream->engine, fg_engine_stream_tail(stream->engine)))
        return CUDA_ERROR_NOT_READY;
    return fg_gpu_status(stream->context->gpu);
}

static CUresult synchronize(struct fg_context *context)
{
    CUresult result = fg_capture_forbids();
    if (result)
        return result;
    fg_engine_context_drain(context->engine);
    return fg_gpu_status(context->gpu);
}

CUresult FG(cuCtxSynchronize)(void)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    return result ? result : synchronize(context);
}

CUresult FG(cuCtxSynchronize_v2)(CUcontext handle)
{
    struct fg_context *context = handle ? fg_context_of(handle) : fg_current_context();
    return context ? synchronize(context) : CUDA_ERROR_INVALID_CONTEXT;
}

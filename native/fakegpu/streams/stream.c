/* Streams: handles and default streams, queueing, waiting. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "streams/work.h"

#define MOST_URGENT (-5)             /* priorities as on recent GPUs: 0 to -5 */

struct streams { struct fg_stream *legacy, *list; };  /* of a context */
static struct fg_handles handles = FG_HANDLES(struct fg_stream, 2);
static uint64_t next_id;

/* Per-thread default streams of this thread; ended with it. */
#define THREAD_STREAMS 16
static __thread struct { uint64_t context_id; struct fg_stream *stream; } own[THREAD_STREAMS];
static pthread_key_t thread_end;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

/* ---- making and ending ----------------------------------------------------------------------------- */

void fg_streams_context_made(struct fg_context *context)
{
    context->streams = calloc(1, sizeof(struct streams));
}

static struct fg_stream *make(struct fg_context *context, unsigned flags, int priority, unsigned how)
{
    struct fg_stream *stream = context->streams ? fg_handle_take(&handles) : NULL;
    if (!stream)
        return NULL;
    stream->engine = fg_engine_stream_open(context->engine, how, priority);
    if (stream->engine < 0) {
        fg_handle_give(&handles, stream);
        return NULL;
    }
    stream->context = context;
    stream->context_id = context->id;
    stream->flags = flags;
    stream->priority = priority;
    pthread_mutex_lock(&fg_mutex);
    struct streams *streams = context->streams;
    stream->id = ++next_id;
    stream->next = streams->list;
    streams->list = stream;
    pthread_mutex_unlock(&fg_mutex);
    return stream;
}

static void end(struct fg_stream *stream, bool with_context)
{
    fg_capture_stream_gone(stream);
    free(stream->leaves);
    if (!with_context) {
        struct streams *streams = stream->context->streams;
        for (struct fg_stream **at = &streams->list; *at; at = &(*at)->next)
            if (*at == stream) {
                *at = stream->next;
                break;
            }
        fg_engine_stream_close(stream->engine);
    }
    fg_handle_give(&handles, stream);
}

void fg_streams_context_gone(struct fg_context *context)
{
    struct streams *streams = context->streams;
    if (!streams)
        return;
    fg_engine_context_drain(context->engine);          /* destroying a context waits for its work */
    pthread_mutex_lock(&fg_mutex);
    for (struct fg_stream *stream = streams->list, *next; stream; stream = next) {
        next = stream->next;
        end(stream, true);
    }
    context->streams = NULL;
    pthread_mutex_unlock(&fg_mutex);
    free(streams);
}

static void end_own(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&fg_mutex);
    for (int i = 0; i < THREAD_STREAMS; i++) {
        struct fg_stream *stream = own[i].stream;
        if (stream && fg_handle_is(&handles, stream) && stream->context_id == own[i].context_id)
            end(stream, false);
        own[i].stream = NULL;
    }
    pthread_mutex_unlock(&fg_mutex);
}
static void make_key(void) { pthread_key_create(&thread_end, end_own); }

/* ---- what a handle means ----------------------------------------------------------------------------- */

static struct fg_stream *per_thread(struct fg_context *context)
{
    int vacant = (int)(context->id % THREAD_STREAMS);
    for (int i = 0; i < THREAD_STREAMS; i++) {
        if (own[i].stream && own[i].context_id == context->id)
            return own[i].stream;
        if (!own[i].stream)
            vacant = i;
    }
    pthread_once(&thread_once, make_key);
    pthread_setspecific(thread_end, own);
    struct fg_stream *stream = make(context, 0, 0, 0);
    if (stream)
        stream->is_default = true;
    own[vacant].context_id = context->id;
    own[vacant].stream = stream;
    return stream;
}

static struct fg_stream *legacy(struct fg_context *context)
{
    struct streams *streams = context->streams;
    if (!streams)
        return NULL;
    struct fg_stream *stream = __atomic_load_n(&streams->legacy, __ATOMIC_ACQUIRE);
    if (stream)
        return stream;
    pthread_mutex_lock(&fg_mutex);
    if (!streams->legacy) {
        stream = make(context, 0, 0, FG_STREAM_LEGACY);
        if (stream)
            stream->is_default = true;
        __atomic_store_n(&streams->legacy, stream, __ATOMIC_RELEASE);
    }
    stream = streams->legacy;
    pthread_mutex_unlock(&fg_mutex);
    return stream;
}

CUresult fg_stream_of(CUstream handle, struct fg_stream **out)
{
    if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
        if (!fg_handle_is(&handles, handle))
            return CUDA_ERROR_INVALID_HANDLE;
        *out = (struct fg_stream *)handle;
        return fg_gpu_status((*out)->context->gpu);
    }
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    bool own_one = handle == CU_STREAM_PER_THREAD || (!handle && fg_per_thread);
    *out = own_one ? per_thread(context) : legacy(context);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fg_stream_submit(struct fg_stream *stream, const struct fg_work *work, uint64_t *seq)
{
    CUresult result = fg_capture_check(stream);
    if (seq)
        *seq = 0;
    if (result)
        return result;
    if (stream->capture)
        return fg_capture_add(stream, work, NULL);
    struct fg_op op;
    result = fg_work_to_op(work, stream->context, &op);
    if (result)
        return result;
    uint64_t number = fg_engine_stream_queue(stream->engine, &op);
    if (seq)
        *seq = number;
    return fg_gpu_status(stream->context->gpu);
}

/* ---- the driver's functions ------------------------------------------------------------------------------ */

CUresult FG(cuStreamCreateWithPriority)(CUstream *out, unsigned int flags, int priority)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    int urgent = priority > 0 ? 0 : priority < MOST_URGENT ? MOST_URGENT : priority;
    struct fg_stream *stream = make(context, flags, urgent, flags ? FG_STREAM_NONBLOCKING : 0);
    *out = (CUstream)stream;
    return stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult FG(cuStreamCreate)(CUstream *out, unsigned int flags)
{
    return FG(cuStreamCreateWithPriority)(out, flags, 0);
}

CUresult FG(cuGreenCtxStreamCreate)(CUstream *out, CUgreenCtx green, unsigned int flags, int priority)
{
    CUcontext context;
    CUresult result = FG(cuCtxFromGreenCtx)(&context, green);
    if (result)
        return result;
    if (!out || flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    int urgent = priority > 0 ? 0 : priority < MOST_URGENT ? MOST_URGENT : priority;
    *out = (CUstream)make((struct fg_context *)context, flags, urgent, FG_STREAM_NONBLOCKING);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult FG(cuStreamDestroy_v2)(CUstream handle)
{
    if (!handle || !fg_handle_is(&handles, handle) || ((struct fg_stream *)handle)->is_default)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&fg_mutex);
    end((struct fg_stream *)handle, false);
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}
CUresult FG(cuStreamDestroy)(CUstream handle) { return FG(cuStreamDestroy_v2)(handle); }

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
        struct streams *streams = stream->context->streams;
        struct last { int engine; uint64_t tail; } *list = calloc(FG_ENGINE_STREAMS, sizeof *list);
        int n = 0;
        pthread_mutex_lock(&fg_mutex);
        for (struct fg_stream *each = streams->list; each && list && n < FG_ENGINE_STREAMS; each = each->next)
            if (!(each->flags & CU_STREAM_NON_BLOCKING) && each != stream) {
                list[n].tail = fg_engine_stream_tail(each->engine);
                list[n++].engine = each->engine;
            }
        pthread_mutex_unlock(&fg_mutex);
        for (int i = 0; i < n; i++)
            fg_engine_stream_wait(list[i].engine, list[i].tail);
        free(list);
    }
    fg_pools_synchronized();
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
    fg_pools_synchronized();
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

CUresult FG(cuCtxGetStreamPriorityRange)(int *least, int *greatest)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = MOST_URGENT;
    return CUDA_SUCCESS;
}

CUresult FG(cuStreamGetPriority)(CUstream handle, int *priority)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (!result && !priority)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *priority = stream->priority;
    return result;
}

CUresult FG(cuStreamGetFlags)(CUstream handle, unsigned int *flags)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (!result && !flags)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *flags = stream->flags;
    return result;
}

CUresult FG(cuStreamGetId)(CUstream handle, unsigned long long *id)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (!result && !id)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *id = stream->id;
    return result;
}

CUresult FG(cuStreamGetCtx)(CUstream handle, CUcontext *context)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (!result && !context)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *context = (CUcontext)stream->context;
    return result;
}

CUresult FG(cuStreamGetCtx_v2)(CUstream handle, CUcontext *context, CUgreenCtx *green)
{
    if (green)
        *green = NULL;
    return FG(cuStreamGetCtx)(handle, context);
}

CUresult FG(cuStreamGetDevice)(CUstream handle, CUdevice *device)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (!result && !device)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *device = stream->context->device;
    return result;
}

/* Synchronisation policies and the like change nothing here. */
CUresult FG(cuStreamCopyAttributes)(CUstream to, CUstream from)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(from, &stream);
    return result ? result : fg_stream_of(to, &stream);
}
CUresult FG(cuStreamGetAttribute)(CUstream handle, CUstreamAttrID id, CUstreamAttrValue *value)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (!result && !value)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result) {
        memset(value, 0, sizeof *value);
        if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            value->priority = stream->priority;
    }
    return result;
}
CUresult FG(cuStreamSetAttribute)(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue *value)
{
    struct fg_stream *stream;
    (void)id;
    CUresult result = fg_stream_of(handle, &stream);
    return result ? result : value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuStreamAttachMemAsync)(CUstream handle, CUdeviceptr address, size_t length, unsigned int flags)
{
    struct fg_stream *stream;
    (void)address; (void)length; (void)flags;
    return fg_stream_of(handle, &stream);
}

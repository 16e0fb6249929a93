/* Streams: making and ending them, default streams, and what a handle means. */
#define _GNU_SOURCE
#include "streams/stream.h"

#include <stdlib.h>

#include "engine/engine.h"
#include "streams/capture.h"

struct fg_streams { struct fg_stream *legacy, *list; }; /* of a context */
static struct fg_handles handles = FG_HANDLES(struct fg_stream, 2);
static uint64_t next_id;

/* Per-thread default streams of this thread; ended with it. */
#define THREAD_STREAMS 16
static __thread struct {
    uint64_t context_id;
    struct fg_stream *stream;
} own[THREAD_STREAMS];
static pthread_key_t thread_end;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

/* ---- making and ending ----------------------------------------------------------------------- */

void fg_streams_context_made(struct fg_context *context)
{
    context->streams = calloc(1, sizeof(struct fg_streams));
}

struct fg_stream *fg_stream_new(struct fg_context *context, unsigned flags, int priority,
                                unsigned how)
{
    int urgent = priority > 0 ? 0 : priority < FG_MOST_URGENT ? FG_MOST_URGENT : priority;
    struct fg_stream *stream = context->streams ? fg_handle_take(&handles) : NULL;
    if (!stream)
        return NULL;
    stream->engine = fg_engine_stream_open(context->engine, how, urgent);
    if (stream->engine < 0) {
        fg_handle_give(&handles, stream);
        return NULL;
    }
    stream->context = context;
    stream->context_id = context->id;
    stream->flags = flags;
    stream->priority = urgent;
    pthread_mutex_lock(&fg_mutex);
    struct fg_streams *streams = context->streams;
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
        struct fg_streams *streams = stream->context->streams;
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
    struct fg_streams *streams = context->streams;
    if (!streams)
        return;
    fg_engine_context_drain(context->engine); /* destroying a context waits for its work */
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
static void make_key(void)
{
    pthread_key_create(&thread_end, end_own);
}

/* ---- what a handle means --------------------------------------------------------------------- */

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
    struct fg_stream *stream = fg_stream_new(context, 0, 0, 0);
    if (stream)
        stream->is_default = true;
    own[vacant].context_id = context->id;
    own[vacant].stream = stream;
    return stream;
}

static struct fg_stream *legacy(struct fg_context *context)
{
    struct fg_streams *streams = context->streams;
    if (!streams)
        return NULL;
    struct fg_stream *stream = __atomic_load_n(&streams->legacy, __ATOMIC_ACQUIRE);
    if (stream)
        return stream;
    pthread_mutex_lock(&fg_mutex);
    if (!streams->legacy) {
        stream = fg_stream_new(context, 0, 0, FG_STREAM_LEGACY);
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

struct fg_stream *fg_streams_of(const struct fg_context *context)
{
    return context->streams->list;
}

/* ---- the calls ------------------------------------------------------------------------------- */

CUresult FG(cuStreamCreateWithPriority)(CUstream *out, unsigned int flags, int priority)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_stream *stream =
        fg_stream_new(context, flags, priority, flags ? FG_STREAM_NONBLOCKING : 0);
    *out = (CUstream)stream;
    return stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult FG(cuStreamCreate)(CUstream *out, unsigned int flags)
{
    return FG(cuStreamCreateWithPriority)(out, flags, 0);
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

CUresult FG(cuStreamDestroy)(CUstream handle)
{
    return FG(cuStreamDestroy_v2)(handle);
}

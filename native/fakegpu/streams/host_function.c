/* Host functions of streams and graphs, and values that streams write. One thread of the process calls them,
 * one after the other; it takes part in virtual time, which stands still while a function runs. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "streams/work.h"

static struct { CUhostFn function; void *data; bool waits; } *calls; /* that are queued */
static uint32_t rooms;
static pthread_mutex_t calls_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t caller_joined = PTHREAD_COND_INITIALIZER;
static enum { NO_CALLER, STARTING, JOINED } caller;
static pid_t caller_pid;

uint32_t fg_host_call_number(CUhostFn function, void *data)
{
    pthread_mutex_lock(&calls_mutex);
    uint32_t at = 0;
    while (at < rooms && calls[at].waits)
        at++;
    if (at == rooms) {
        rooms = rooms ? 2 * rooms : 64;
        calls = realloc(calls, rooms * sizeof *calls);
        if (!calls)
            abort();
        memset(calls + at, 0, (rooms - at) * sizeof *calls);
    }
    calls[at].function = function;
    calls[at].data = data;
    calls[at].waits = true;
    pthread_mutex_unlock(&calls_mutex);
    return at;
}

static void *call_them(void *unused)
{
    (void)unused;
    fakegpu_join();
    pthread_mutex_lock(&calls_mutex);
    caller = JOINED;
    pthread_cond_broadcast(&caller_joined);
    pthread_mutex_unlock(&calls_mutex);
    for (;;) {
        int stream;
        uint32_t number;
        if (!fg_engine_host_next(fg_own_process(), &stream, &number))
            continue;
        pthread_mutex_lock(&calls_mutex);
        CUhostFn function = calls[number].function;
        void *data = calls[number].data;
        calls[number].waits = false;
        pthread_mutex_unlock(&calls_mutex);
        function(data);
        fg_engine_host_returned(stream);
    }
    return NULL;
}

void fg_host_thread_start(void)
{
    pthread_mutex_lock(&calls_mutex);
    if (caller_pid != getpid())
        caller = NO_CALLER;                    /* a forked child has no such thread */
    if (caller == NO_CALLER) {
        sigset_t all, before;
        pthread_t thread;
        caller = STARTING;
        caller_pid = getpid();
        sigfillset(&all);                      /* the application's signals are not for this thread */
        pthread_sigmask(SIG_BLOCK, &all, &before);
        if (pthread_create(&thread, NULL, call_them, NULL))
            abort();
        pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    while (caller != JOINED)
        pthread_cond_wait(&caller_joined, &calls_mutex);
    pthread_mutex_unlock(&calls_mutex);
}

CUresult FG(cuLaunchHostFunc)(CUstream handle, CUhostFn function, void *data)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (result)
        return result;
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = function, .userData = data}};
    return fg_stream_submit(stream, &work, NULL);
}

CUresult FG(cuLaunchHostFunc_v2)(CUstream handle, CUhostFn function, void *data, unsigned int mode)
{
    return mode > 1 ? CUDA_ERROR_INVALID_VALUE : FG(cuLaunchHostFunc)(handle, function, data);
}

struct callback { CUstream stream; CUstreamCallback function; void *data; };
static void call_back(void *pointer)
{
    struct callback *callback = pointer;
    callback->function(callback->stream, CUDA_SUCCESS, callback->data);
    free(callback);
}

CUresult FG(cuStreamAddCallback)(CUstream handle, CUstreamCallback function, void *data, unsigned int flags)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (result)
        return result;
    if (!function || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return fg_capture_break(stream);
    struct callback *callback = malloc(sizeof *callback);
    if (!callback)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *callback = (struct callback){handle, function, data};
    return FG(cuLaunchHostFunc)(handle, call_back, callback);
}

/* ---- values written by a stream ----------------------------------------------------------------------------- */

struct written { uint64_t address, value; unsigned bytes; };
static void write_value(void *pointer)
{
    struct written *written = pointer;
    fg_copy_bytes(written->address, (uint64_t)(uintptr_t)&written->value, written->bytes);
    free(written);
}

static CUresult queue_value(CUstream handle, CUdeviceptr address, uint64_t value, unsigned bytes)
{
    if (!address || address % bytes || !fg_address_valid(address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    struct written *written = malloc(sizeof *written);
    if (!written)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *written = (struct written){address, value, bytes};
    CUresult result = FG(cuLaunchHostFunc)(handle, write_value, written);
    if (result)
        free(written);
    return result;
}
CUresult FG(cuStreamWriteValue32_v2)(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : queue_value(stream, address, value, 4);
}
CUresult FG(cuStreamWriteValue64_v2)(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : queue_value(stream, address, value, 8);
}
CUresult FG(cuStreamWriteValue32)(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
    return FG(cuStreamWriteValue32_v2)(stream, address, value, flags);
}
CUresult FG(cuStreamWriteValue64)(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
    return FG(cuStreamWriteValue64_v2)(stream, address, value, flags);
}

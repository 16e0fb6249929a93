/* Host functions of streams, and values that streams write. */
#include <stdlib.h>

#include "memory/content.h"
#include "streams/capture.h"
#include "streams/submit.h"

CUresult FG(cuLaunchHostFunc)(CUstream handle, CUhostFn function, void *data)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(handle, &stream);
    if (result)
        return result;
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_HOST,
                           .host = {.fn = function, .userData = data}};
    return fg_stream_submit(stream, &work, NULL);
}

CUresult FG(cuLaunchHostFunc_v2)(CUstream handle, CUhostFn function, void *data, unsigned int mode)
{
    return mode > 1 ? CUDA_ERROR_INVALID_VALUE : FG(cuLaunchHostFunc)(handle, function, data);
}

struct callback {
    CUstream stream;
    CUstreamCallback function;
    void *data;
};
static void call_back(void *pointer)
{
    struct callback *callback = pointer;
    callback->function(callback->stream, CUDA_SUCCESS, callback->data);
    free(callback);
}

CUresult FG(cuStreamAddCallback)(CUstream handle, CUstreamCallback function, void *data,
                                 unsigned int flags)
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

/* ---- values written by a stream -------------------------------------------------------------- */

struct written {
    uint64_t address, value;
    unsigned bytes;
};
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
CUresult FG(cuStreamWriteValue32_v2)(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                     unsigned int flags)
{
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : queue_value(stream, address, value, 4);
}
CUresult FG(cuStreamWriteValue64_v2)(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                     unsigned int flags)
{
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : queue_value(stream, address, value, 8);
}
CUresult FG(cuStreamWriteValue32)(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                  unsigned int flags)
{
    return FG(cuStreamWriteValue32_v2)(stream, address, value, flags);
}
CUresult FG(cuStreamWriteValue64)(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                  unsigned int flags)
{
    return FG(cuStreamWriteValue64_v2)(stream, address, value, flags);
}

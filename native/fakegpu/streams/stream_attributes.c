/* What a stream says of itself, and attributes that change nothing here. */
#include <string.h>

#include "streams/stream.h"

CUresult FG(cuCtxGetStreamPriorityRange)(int *least, int *greatest)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = FG_MOST_URGENT;
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
CUresult FG(cuStreamSetAttribute)(CUstream handle, CUstreamAttrID id,
                                  const CUstreamAttrValue *value)
{
    struct fg_stream *stream;
    (void)id;
    CUresult result = fg_stream_of(handle, &stream);
    return result ? result : value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuStreamAttachMemAsync)(CUstream handle, CUdeviceptr address, size_t length,
                                    unsigned int flags)
{
    struct fg_stream *stream;
    (void)address;
    (void)length;
    (void)flags;
    return fg_stream_of(handle, &stream);
}

/* Copies. Their bytes move when the call is made (memory/content.c), their time passes on the
 * stream: 1 us and bytes by the option's bandwidth. Which of them block the host is as the
 * driver's documentation says: those from and to the host block, those inside a GPU and fills do
 * not. */
#include "copies/copy.h"

#include "engine/engine.h"
#include "memory/copy_shape.h"
#include "streams/capture.h"
#include "streams/submit.h"

#define STAGED (64u << 10) /* a copy from pageable memory returns early up to here */

CUresult fg_copy(const CUDA_MEMCPY3D *shape, CUstream hstream, bool async)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!shape)
        return CUDA_ERROR_INVALID_VALUE;
    if (!shape->WidthInBytes || !shape->Height || !shape->Depth)
        return CUDA_SUCCESS;
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                           .copy = {*shape, fg_copy_kind(shape)}};
    if (!work.copy.kind)
        return CUDA_ERROR_INVALID_VALUE;
    if (!async && stream->capture)
        return fg_capture_break(stream);
    uint64_t seq, bytes = shape->WidthInBytes * shape->Height * shape->Depth;
    result = fg_stream_submit(stream, &work, &seq);
    bool pageable =
        (work.copy.kind == FG_OP_TO_HOST && !fg_address_pinned(fg_copy_target(shape))) ||
        (work.copy.kind == FG_OP_TO_DEVICE && !fg_address_pinned(fg_copy_source(shape)) &&
         bytes > STAGED);
    if (!result && seq && work.copy.kind != FG_OP_FILL && (!async || pageable))
        fg_engine_stream_wait(stream->engine, seq);
    return result;
}

CUresult fg_copy_flat(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from,
                      size_t bytes, CUstream stream, bool async)
{
    CUDA_MEMCPY3D shape = {.srcMemoryType = from_type,
                           .srcHost = (const void *)(uintptr_t)from,
                           .srcDevice = from,
                           .dstMemoryType = to_type,
                           .dstHost = (void *)(uintptr_t)to,
                           .dstDevice = to,
                           .srcPitch = bytes,
                           .dstPitch = bytes,
                           .srcHeight = 1,
                           .dstHeight = 1,
                           .WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1};
    return fg_copy(&shape, stream, async);
}

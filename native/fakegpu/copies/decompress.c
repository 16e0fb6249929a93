/* Decompression. */
#include "engine/engine.h"
#include "memory/content.h"
#include "streams/capture.h"

/* Decompression, at a tenth of the speed of a copy; nothing is decompressed. */
CUresult FG(cuMemBatchDecompressAsync)(CUmemDecompressParams *list, size_t count,
                                       unsigned int flags, size_t *wrong, CUstream hstream)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!list || !count || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return fg_capture_break(stream);
    double bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (!fg_address_valid((uint64_t)(uintptr_t)list[i].dst, list[i].dstNumBytes)) {
            if (wrong)
                *wrong = i;
            return CUDA_ERROR_INVALID_VALUE;
        }
        bytes += (double)list[i].dstNumBytes;
    }
    struct fg_op op = {.kind = FG_OP_FILL,
                       .left =
                           1000 + (uint64_t)(bytes * 1e10 / (double)fg_state->engine.inside_bps)};
    fg_engine_stream_queue(stream->engine, &op);
    return CUDA_SUCCESS;
}

#include "streams/submit.h"

#include "driver/capture_mode.h"
#include "engine/engine.h"
#include "streams/capture.h"

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

/* Events. A record takes event_ns on the GPU and keeps the time at its end; a program sees that
 * time to half a microsecond, as the driver's documentation says. */
#include "streams/event.h"

#include "driver/capture_mode.h"
#include "engine/engine.h"
#include "state/process_table.h"
#include "streams/capture.h"
#include "streams/stream.h"

#define STEP_NS 500

static struct fg_handles handles = FG_HANDLES(struct fg_event, 3);

struct fg_event *fg_event_of(CUevent handle)
{
    return fg_handle_is(&handles, handle) ? (struct fg_event *)handle : NULL;
}

CUresult fg_event_new(int engine, unsigned flags, CUevent *out)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    struct fg_event *event = fg_handle_take(&handles);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->engine = engine >= 0 ? engine : fg_engine_event_open(fg_own_process());
    if (event->engine < 0) {
        fg_handle_give(&handles, event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event->context = context;
    event->context_id = context->id;
    event->flags = flags;
    *out = (CUevent)event;
    return CUDA_SUCCESS;
}

CUresult FG(cuEventCreate)(CUevent *out, unsigned int flags)
{
    if (!out || flags & ~7u)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    return fg_event_new(-1, flags, out);
}

CUresult FG(cuEventDestroy_v2)(CUevent handle)
{
    struct fg_event *event = fg_event_of(handle);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    fg_capture_event_gone(event);
    fg_engine_event_close(event->engine);
    fg_handle_give(&handles, event);
    return CUDA_SUCCESS;
}
CUresult FG(cuEventDestroy)(CUevent handle)
{
    return FG(cuEventDestroy_v2)(handle);
}

CUresult FG(cuEventRecordWithFlags)(CUevent handle, CUstream hstream, unsigned int flags)
{
    struct fg_event *event = fg_event_of(handle);
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!event || event->context_id != stream->context_id)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    result = fg_capture_check(stream);
    if (result)
        return result;
    if (stream->capture && flags) {
        struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = event};
        return fg_capture_add(stream, &work, NULL);
    }
    if (stream->capture)
        return fg_capture_record(stream, event);
    if (flags)
        return CUDA_ERROR_ILLEGAL_STATE;
    fg_capture_event_gone(event); /* it no longer stands for a point in a capture */
    fg_engine_event_record(event->engine, stream->engine);
    return fg_gpu_status(stream->context->gpu);
}
CUresult FG(cuEventRecord)(CUevent handle, CUstream stream)
{
    return FG(cuEventRecordWithFlags)(handle, stream, 0);
}

CUresult FG(cuStreamWaitEvent)(CUstream hstream, CUevent handle, unsigned int flags)
{
    struct fg_event *event = fg_event_of(handle);
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture && flags) {
        struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = event};
        return fg_capture_add(stream, &work, NULL);
    }
    if (stream->capture || fg_event_captured(event))
        return fg_capture_wait(stream, event);
    result = fg_capture_check(stream);
    uint64_t record = fg_engine_event_recorded(event->engine);
    if (result || !record)
        return result; /* never recorded: nothing to wait for */
    struct fg_op op = {.kind = FG_OP_WAIT, .ref = (uint32_t)event->engine, .ref_seq = record};
    fg_engine_stream_queue(stream->engine, &op);
    return CUDA_SUCCESS;
}

CUresult FG(cuEventQuery)(CUevent handle)
{
    struct fg_event *event = fg_event_of(handle);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (fg_event_captured(event))
        return CUDA_ERROR_CAPTURED_EVENT;
    CUresult result = fg_capture_forbids();
    if (result)
        return result;
    return fg_engine_event_done(event->engine) ? fg_gpu_status(event->context->gpu)
                                               : CUDA_ERROR_NOT_READY;
}

CUresult FG(cuEventSynchronize)(CUevent handle)
{
    struct fg_event *event = fg_event_of(handle);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (fg_event_captured(event))
        return CUDA_ERROR_CAPTURED_EVENT;
    CUresult result = fg_capture_forbids();
    if (result)
        return result;
    fg_engine_event_wait(event->engine);
    return fg_gpu_status(event->context->gpu);
}

CUresult FG(cuEventElapsedTime_v2)(float *milliseconds, CUevent from, CUevent to)
{
    struct fg_event *first = fg_event_of(from), *second = fg_event_of(to);
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!first || !second || (first->flags | second->flags) & CU_EVENT_DISABLE_TIMING ||
        !fg_engine_event_recorded(first->engine) || !fg_engine_event_recorded(second->engine))
        return CUDA_ERROR_INVALID_HANDLE;
    if (fg_event_captured(first) || fg_event_captured(second))
        return CUDA_ERROR_CAPTURED_EVENT;
    if (!fg_engine_event_done(first->engine) || !fg_engine_event_done(second->engine))
        return CUDA_ERROR_NOT_READY;
    int64_t steps = (int64_t)(fg_engine_event_time(second->engine) / STEP_NS) -
                    (int64_t)(fg_engine_event_time(first->engine) / STEP_NS);
    *milliseconds = (float)((double)steps * STEP_NS / 1e6);
    return CUDA_SUCCESS;
}
CUresult FG(cuEventElapsedTime)(float *milliseconds, CUevent from, CUevent to)
{
    return FG(cuEventElapsedTime_v2)(milliseconds, from, to);
}

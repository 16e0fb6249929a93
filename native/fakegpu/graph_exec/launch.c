/* Launches of executable graphs. One queues the nodes in an order of their dependencies, kernels
 * that follow each other as one operation: branches run one after the other, as kernels that
 * fill the GPU do. Launches of one executable graph never overlap, as on the driver. */
#include "clock/clock.h"
#include "engine/engine.h"
#include "graph_exec/exec.h"
#include "graphs/graph_memory.h"
#include "streams/capture.h"

static uint64_t queue(struct fg_stream *stream, struct fg_op *op)
{
    uint64_t seq = op->kind ? fg_engine_stream_queue(stream->engine, op) : 0;
    op->kind = FG_OP_NONE;
    return seq;
}

static CUresult run(struct fg_exec *exec, struct fg_stream *stream)
{
    CUresult result = CUDA_SUCCESS;
    struct fg_op kernels = {.kind = FG_OP_NONE}, op;
    if (exec->last_stream >= 0 && exec->last_stream != stream->engine) {
        op = (struct fg_op){
            .kind = FG_OP_JOIN, .ref = (uint32_t)exec->last_stream, .ref_seq = exec->last_seq};
        queue(stream, &op);
    }
    for (size_t i = 0; i < exec->n && !result; i++) {
        const struct fg_work *work = &exec->item[i].work;
        if (exec->item[i].disabled || work->type == CU_GRAPH_NODE_TYPE_EMPTY ||
            work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || work->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            continue;
        if (work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ||
            work->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
            queue(stream, &kernels);
            if (!fg_event_of((CUevent)work->event))
                return CUDA_ERROR_INVALID_HANDLE;
            uint64_t record = fg_engine_event_recorded(work->event->engine);
            if (work->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
                fg_engine_event_record(work->event->engine, stream->engine);
            else if (record)
                fg_engine_stream_queue(stream->engine,
                                       &(struct fg_op){.kind = FG_OP_WAIT,
                                                       .ref = (uint32_t)work->event->engine,
                                                       .ref_seq = record});
            continue;
        }
        result = fg_work_to_op(work, stream->context, &op);
        if (result)
            break;
        if (op.kind == FG_OP_KERNEL && kernels.kind && kernels.share == op.share) {
            kernels.left += op.left;
            kernels.count++;
        } else {
            queue(stream, &kernels);
            if (op.kind == FG_OP_KERNEL)
                kernels = op;
            else
                queue(stream, &op);
        }
    }
    queue(stream, &kernels);
    exec->last_stream = stream->engine;
    exec->last_seq = fg_engine_stream_tail(stream->engine);
    return result;
}

CUresult FG(cuGraphLaunch)(CUgraphExec handle, CUstream hstream)
{
    struct fg_exec *exec = fg_exec_of(handle);
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    result = fg_capture_check(stream);
    if (result)
        return result;
    if (stream->capture) /* its nodes become a child graph: not modelled */
        return fg_capture_break(stream);
    if (exec->allocates)
        result = fg_graph_memory_take(exec->item, exec->n, exec->flags, false);
    if (!exec->is_uploaded && fg_state->engine.load_ns)
        fg_clock_spend(fg_state->engine.load_ns);
    exec->is_uploaded = true;
    if (!result)
        result = run(exec, stream);
    return result ? result : fg_gpu_status(stream->context->gpu);
}

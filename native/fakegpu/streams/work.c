/* What a piece of work costs: the operation that the engine gets for it. */
#include "streams/work.h"

#include "engine/engine.h"
#include "memory/content.h"
#include "memory/copy_shape.h"
#include "modules/function.h"
#include "streams/host_thread.h"

static CUresult kernel_op(const CUDA_KERNEL_NODE_PARAMS *kernel, struct fg_context *context,
                          struct fg_op *op)
{
    struct fg_function *function =
        fg_function_of(kernel->func ? (void *)kernel->func : (void *)kernel->kern);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t blocks = (uint64_t)kernel->gridDimX * kernel->gridDimY * kernel->gridDimZ;
    uint64_t ns = function->ns + function->per_block_ns * blocks;
    const struct fg_engine *engine = &fg_state->engine;
    if (function->other_pct && fg_engine_random(context->engine) % 100 < function->other_pct)
        ns = function->other_ns;
    if (function->phase &&
        atomic_fetch_add(&function->launches, 1) % (function->phase + function->other_phase) >=
            function->phase)
        ns = function->other_ns;
    uint64_t jitter =
        function->jitter_pct < 0 ? engine->jitter_pct : (uint64_t)function->jitter_pct;
    uint64_t span = ns / 100 * jitter + ns % 100 * jitter / 100;
    if (span)
        ns = ns - span + fg_engine_random(context->engine) % (2 * span + 1);
    *op = (struct fg_op){.kind = FG_OP_KERNEL, .left = ns, .count = 1};
    uint64_t sms = (uint64_t)fg_state->gpu[context->gpu].profile.sm_count;
    if (function->sms && function->sms < sms)
        op->share = (uint32_t)(function->sms * FG_WHOLE / sms);
    if (engine->tail_pct) {
        op->ref = (op->share ? op->share : FG_WHOLE) / 2;
        op->ref_seq = ns * engine->tail_pct / 100;
    }
    return CUDA_SUCCESS;
}

static CUresult copy_op(const struct fg_work *work, struct fg_op *op)
{
    const struct fg_engine *engine = &fg_state->engine;
    uint64_t speed = work->copy.kind == FG_OP_TO_HOST     ? engine->to_host_bps
                     : work->copy.kind == FG_OP_TO_DEVICE ? engine->to_device_bps
                                                          : engine->inside_bps;
    const CUDA_MEMCPY3D *shape = &work->copy.shape;
    double bytes = (double)shape->WidthInBytes * (double)shape->Height * (double)shape->Depth;
    fg_copy_move(shape);
    *op = (struct fg_op){.kind = work->copy.kind,
                         .ref = fg_copy_route(shape),
                         .ref_seq = (uint64_t)bytes,
                         .left = 1000 + (uint64_t)(bytes * 1e9 / (double)speed)};
    return CUDA_SUCCESS;
}

static CUresult fill_op(const CUDA_MEMSET_NODE_PARAMS *fill, struct fg_op *op)
{
    uint64_t row = fill->width * fill->elementSize, bytes = row * fill->height;
    for (size_t y = 0; y < fill->height; y++)
        fg_fill_bytes(fill->dst + y * fill->pitch, fill->value, fill->elementSize, fill->width);
    *op = (struct fg_op){
        .kind = FG_OP_FILL,
        .left = 1000 + (uint64_t)((double)bytes * 1e9 / (double)fg_state->engine.inside_bps)};
    return CUDA_SUCCESS;
}

CUresult fg_work_to_op(const struct fg_work *work, struct fg_context *context, struct fg_op *op)
{
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return kernel_op(&work->kernel, context, op);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_op(work, op);
    case CU_GRAPH_NODE_TYPE_MEMSET: return fill_op(&work->fill, op);
    case CU_GRAPH_NODE_TYPE_HOST:
        fg_host_thread_start();
        *op = (struct fg_op){.kind = FG_OP_HOST,
                             .ref = fg_host_call_number(work->host.fn, work->host.userData)};
        return CUDA_SUCCESS;
    default: *op = (struct fg_op){.kind = FG_OP_NOTHING}; return CUDA_SUCCESS;
    }
}

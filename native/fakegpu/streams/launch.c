/* Launches of kernels. */
#include "streams/launch.h"

#include <stdlib.h>
#include <string.h>

#include "clock/clock.h"
#include "engine/engine.h"
#include "modules/function.h"
#include "streams/submit.h"

/* CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel has run, as for debugging. */
static bool is_blocking(void)
{
    const char *text = getenv("CUDA_LAUNCH_BLOCKING");
    return text && strcmp(text, "1") == 0;
}

CUresult fg_launch(CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, CUstream hstream, bool cooperative,
                   void **params, void **extra)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    struct fg_function *function = fg_function_of(handle);
    if (!function ||
        (function->context && function->context != stream->context && !stream->context->sm_count))
        return CUDA_ERROR_INVALID_HANDLE; /* a green context runs its primary context's functions */
    uint64_t blocks = (uint64_t)gx * gy * gz, threads = (uint64_t)bx * by * bz;
    if (!blocks || !threads || threads > FG_MOST_THREADS || gy > 65535 || gz > 65535 || bz > 64)
        return CUDA_ERROR_INVALID_VALUE;
    const struct fg_profile *profile = &fg_state->gpu[stream->context->gpu].profile;
    if (cooperative && blocks * threads > profile->sm_count * profile->threads_per_sm)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    /* Threads may launch it for the first time at once. */
    bool is_first = !stream->capture && !__atomic_load_n(&function->is_loaded, __ATOMIC_RELAXED);
    if (is_first && fg_state->engine.load_ns)
        fg_clock_spend(fg_state->engine.load_ns);
    if (is_first)
        __atomic_store_n(&function->is_loaded, true, __ATOMIC_RELAXED);
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                           .kernel = {.func = handle,
                                      .gridDimX = gx,
                                      .gridDimY = gy,
                                      .gridDimZ = gz,
                                      .blockDimX = bx,
                                      .blockDimY = by,
                                      .blockDimZ = bz,
                                      .sharedMemBytes = shared,
                                      .kernelParams = params,
                                      .extra = extra}};
    result = fg_stream_submit(stream, &work, NULL);
    if (!result && !stream->capture && is_blocking())
        fg_engine_stream_wait(stream->engine, fg_engine_stream_tail(stream->engine));
    return result;
}

CUresult FG(cuLaunchKernel)(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                            unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                            CUstream stream, void **params, void **extra)
{
    return fg_launch(f, gx, gy, gz, bx, by, bz, shared, stream, false, params, extra);
}

CUresult FG(cuLaunchCooperativeKernel)(CUfunction f, unsigned int gx, unsigned int gy,
                                       unsigned int gz, unsigned int bx, unsigned int by,
                                       unsigned int bz, unsigned int shared, CUstream stream,
                                       void **params)
{
    return fg_launch(f, gx, gy, gz, bx, by, bz, shared, stream, true, params, NULL);
}

CUresult FG(cuLaunchKernelEx)(const CUlaunchConfig *config, CUfunction f, void **params,
                              void **extra)
{
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    bool cooperative = false;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            cooperative = config->attrs[i].value.cooperative != 0;
    return fg_launch(f, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                     config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream,
                     cooperative, params, extra);
}

CUresult FG(cuLaunchCooperativeKernelMultiDevice)(CUDA_LAUNCH_PARAMS *list_, unsigned int devices,
                                                  unsigned int flags)
{
    if (!list_ || !devices || flags & ~3u)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < devices && !result; i++)
        result =
            fg_launch(list_[i].function, list_[i].gridDimX, list_[i].gridDimY, list_[i].gridDimZ,
                      list_[i].blockDimX, list_[i].blockDimY, list_[i].blockDimZ,
                      list_[i].sharedMemBytes, list_[i].hStream, true, list_[i].kernelParams, NULL);
    return result;
}

/* Functions and their launches. A function's name says how long it runs (fakegpu.h). */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streams/work.h"

#define MOST_THREADS 1024            /* of a block */

static struct fg_handles functions = FG_HANDLES(struct fg_function, 1);
static struct fg_function *list;     /* all live ones */

/* ---- names ------------------------------------------------------------------------------------------ */

static bool number(const char **at, uint64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    *value = strtoull(*at, &end, 10);
    *at = end;
    return true;
}

static bool word(const char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length))
        return false;
    *at += length;
    return true;
}

/* ns_N, bi_A_B_P, blk_N, empty; then _jP (jitter, %) and _smK (uses K SMs), in any order. */
static bool parse(const char *at, struct fg_function *function)
{
    uint64_t value, percent;
    if (word(&at, "ns_")) {
        if (!number(&at, &function->ns))
            return false;
    } else if (word(&at, "bi_")) {
        if (!number(&at, &function->ns) || !word(&at, "_") || !number(&at, &function->other_ns) ||
            !word(&at, "_") || !number(&at, &percent) || percent > 100)
            return false;
        function->other_pct = (unsigned)percent;
    } else if (word(&at, "blk_")) {
        if (!number(&at, &function->per_block_ns))
            return false;
    } else if (!word(&at, "empty")) {
        return false;
    }
    function->jitter_pct = -1;
    for (;;) {
        if (word(&at, "_j") && number(&at, &value) && value <= 100)
            function->jitter_pct = (int)value;
        else if (word(&at, "_sm") && number(&at, &value) && value)
            function->sms = (unsigned)value;
        else
            return true;
    }
}

/* Also inside a mangled name, as _Z7ns_4000v. */
static bool understand(const char *name, struct fg_function *function)
{
    for (const char *at = name; *at; at++)
        if ((at == name || !isalpha((unsigned char)at[-1])) && parse(at, function))
            return true;
    return false;
}

struct fg_function *fg_function_new(struct fg_context *context, void *module, const char *name)
{
    struct fg_function *function = fg_handle_take(&functions);
    if (!function)
        return NULL;
    if (!understand(name, function)) {
        fg_handle_give(&functions, function);
        return NULL;
    }
    snprintf(function->name, sizeof function->name, "%s", name);
    function->context = context;
    function->module = module;
    pthread_mutex_lock(&fg_mutex);
    function->next = list;
    list = function;
    pthread_mutex_unlock(&fg_mutex);
    return function;
}

void fg_functions_end(void *module)
{
    pthread_mutex_lock(&fg_mutex);
    for (struct fg_function **at = &list; *at;) {
        struct fg_function *function = *at;
        if (function->module == module) {
            *at = function->next;
            fg_handle_give(&functions, function);
        } else {
            at = &function->next;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
}

struct fg_function *fg_function_of(const void *handle)
{
    return fg_handle_is(&functions, handle) ? (struct fg_function *)handle : NULL;
}

/* ---- what a launch costs ------------------------------------------------------------------------------ */

static CUresult kernel_op(const CUDA_KERNEL_NODE_PARAMS *kernel, struct fg_context *context, struct fg_op *op)
{
    struct fg_function *function = fg_function_of(kernel->func ? (void *)kernel->func : (void *)kernel->kern);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t blocks = (uint64_t)kernel->gridDimX * kernel->gridDimY * kernel->gridDimZ;
    uint64_t ns = function->ns + function->per_block_ns * blocks;
    const struct fg_engine *engine = &fg_state->engine;
    if (function->other_pct && fg_engine_random(context->engine) % 100 < function->other_pct)
        ns = function->other_ns;
    uint64_t jitter = function->jitter_pct < 0 ? engine->jitter_pct : (uint64_t)function->jitter_pct;
    uint64_t span = ns / 100 * jitter + ns % 100 * jitter / 100;
    if (span)
        ns = ns - span + fg_engine_random(context->engine) % (2 * span + 1);
    *op = (struct fg_op){.kind = FG_OP_KERNEL, .left = ns, .count = 1};
    uint64_t sms = (uint64_t)fg_state->gpu[context->gpu].profile.sm_count;
    if (function->sms && function->sms < sms)
        op->share = (uint32_t)(function->sms * FG_WHOLE / sms);
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
    *op = (struct fg_op){.kind = work->copy.kind, .left = 1000 + (uint64_t)(bytes * 1e9 / (double)speed)};
    return CUDA_SUCCESS;
}

static CUresult fill_op(const CUDA_MEMSET_NODE_PARAMS *fill, struct fg_op *op)
{
    uint64_t row = fill->width * fill->elementSize, bytes = row * fill->height;
    for (size_t y = 0; y < fill->height; y++)
        fg_fill_bytes(fill->dst + y * fill->pitch, fill->value, fill->elementSize, fill->width);
    *op = (struct fg_op){.kind = FG_OP_FILL,
                         .left = 1000 + (uint64_t)((double)bytes * 1e9 / (double)fg_state->engine.inside_bps)};
    return CUDA_SUCCESS;
}

CUresult fg_work_to_op(const struct fg_work *work, struct fg_context *context, struct fg_op *op)
{
    switch (work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_op(&work->kernel, context, op);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy_op(work, op);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return fill_op(&work->fill, op);
    case CU_GRAPH_NODE_TYPE_HOST:
        fg_host_thread_start();
        *op = (struct fg_op){.kind = FG_OP_HOST, .ref = fg_host_call_number(work->host.fn, work->host.userData)};
        return CUDA_SUCCESS;
    default:
        *op = (struct fg_op){.kind = FG_OP_NOTHING};
        return CUDA_SUCCESS;
    }
}

/* ---- launches -------------------------------------------------------------------------------------------- */

static CUresult launch(CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, CUstream hstream, bool cooperative, void **params,
                       void **extra)
{
    struct fg_stream *stream;
    CUresult result = fg_stream_of(hstream, &stream);
    if (result)
        return result;
    struct fg_function *function = fg_function_of(handle);
    if (!function || (function->context && function->context != stream->context && !stream->context->sm_count))
        return CUDA_ERROR_INVALID_HANDLE;      /* a green context runs its primary context's functions */
    uint64_t blocks = (uint64_t)gx * gy * gz, threads = (uint64_t)bx * by * bz;
    if (!blocks || !threads || threads > MOST_THREADS || gy > 65535 || gz > 65535 || bz > 64)
        return CUDA_ERROR_INVALID_VALUE;
    const struct fg_profile *profile = &fg_state->gpu[stream->context->gpu].profile;
    if (cooperative && blocks * threads > profile->sm_count * profile->threads_per_sm)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    struct fg_work work = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                           .kernel = {.func = handle, .gridDimX = gx, .gridDimY = gy, .gridDimZ = gz,
                                      .blockDimX = bx, .blockDimY = by, .blockDimZ = bz,
                                      .sharedMemBytes = shared, .kernelParams = params, .extra = extra}};
    return fg_stream_submit(stream, &work, NULL);
}

CUresult FG(cuLaunchKernel)(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                            unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
                            void **params, void **extra)
{
    return launch(f, gx, gy, gz, bx, by, bz, shared, stream, false, params, extra);
}

CUresult FG(cuLaunchCooperativeKernel)(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                                       unsigned int bx, unsigned int by, unsigned int bz,
                                       unsigned int shared, CUstream stream, void **params)
{
    return launch(f, gx, gy, gz, bx, by, bz, shared, stream, true, params, NULL);
}

CUresult FG(cuLaunchKernelEx)(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    bool cooperative = false;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            cooperative = config->attrs[i].value.cooperative != 0;
    return launch(f, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
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
        result = launch(list_[i].function, list_[i].gridDimX, list_[i].gridDimY, list_[i].gridDimZ,
                        list_[i].blockDimX, list_[i].blockDimY, list_[i].blockDimZ,
                        list_[i].sharedMemBytes, list_[i].hStream, true, list_[i].kernelParams, NULL);
    return result;
}

/* The launch interface of CUDA 1 to 3. */
CUresult FG(cuFuncSetBlockShape)(CUfunction f, int x, int y, int z)
{
    struct fg_function *function = fg_function_of(f);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (x < 1 || y < 1 || z < 1 || (int64_t)x * y * z > MOST_THREADS)
        return CUDA_ERROR_INVALID_VALUE;
    function->old_block[0] = (unsigned)x;
    function->old_block[1] = (unsigned)y;
    function->old_block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

static CUresult old_launch(CUfunction f, int width, int height, CUstream stream)
{
    struct fg_function *function = fg_function_of(f);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    const unsigned *block = function->old_block;
    if (!block[0] || width < 1 || height < 1)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(f, (unsigned)width, (unsigned)height, 1, block[0], block[1], block[2], 0, stream, false,
                  NULL, NULL);
}
CUresult FG(cuLaunch)(CUfunction f) { return old_launch(f, 1, 1, NULL); }
CUresult FG(cuLaunchGrid)(CUfunction f, int width, int height) { return old_launch(f, width, height, NULL); }
CUresult FG(cuLaunchGridAsync)(CUfunction f, int width, int height, CUstream stream)
{
    return old_launch(f, width, height, stream);
}

static CUresult only_checked(CUfunction f)
{
    return fg_function_of(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult FG(cuFuncSetSharedSize)(CUfunction f, unsigned int bytes) { (void)bytes; return only_checked(f); }
CUresult FG(cuParamSetSize)(CUfunction f, unsigned int bytes) { (void)bytes; return only_checked(f); }
CUresult FG(cuParamSeti)(CUfunction f, int at, unsigned int v) { (void)at; (void)v; return only_checked(f); }
CUresult FG(cuParamSetf)(CUfunction f, int at, float v) { (void)at; (void)v; return only_checked(f); }
CUresult FG(cuParamSetv)(CUfunction f, int at, void *p, unsigned int n)
{
    (void)at; (void)p; (void)n;
    return only_checked(f);
}
CUresult FG(cuFuncSetCacheConfig)(CUfunction f, CUfunc_cache config) { (void)config; return only_checked(f); }
CUresult FG(cuFuncSetSharedMemConfig)(CUfunction f, CUsharedconfig config)
{
    (void)config;
    return only_checked(f);
}
CUresult FG(cuFuncLoad)(CUfunction f) { return only_checked(f); }

/* ---- attributes -------------------------------------------------------------------------------------------- */

static CUresult get_attribute(const struct fg_function *function, int *value, CUfunction_attribute attribute)
{
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    int gpu = function->context ? function->context->gpu : 0;
    int arch = (int)(fg_state->gpu[gpu].profile.capability_major * 10 + fg_state->gpu[gpu].profile.capability_minor);
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK              ? MOST_THREADS
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS                         ? 32
             : attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION ||
                       attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION           ? arch
             : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES    ? (function->dynamic_shared ? function->dynamic_shared : 48 << 10)
             : attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ? function->carveout
                                                                               : 0;
    return CUDA_SUCCESS;
}

static CUresult set_attribute(struct fg_function *function, CUfunction_attribute attribute, int value)
{
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        function->dynamic_shared = value;
    else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        function->carveout = value;
    else if (attribute <= CU_FUNC_ATTRIBUTE_CACHE_MODE_CA || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult FG(cuFuncGetAttribute)(int *value, CUfunction_attribute attribute, CUfunction f)
{
    return get_attribute(fg_function_of(f), value, attribute);
}
CUresult FG(cuFuncSetAttribute)(CUfunction f, CUfunction_attribute attribute, int value)
{
    return set_attribute(fg_function_of(f), attribute, value);
}
CUresult FG(cuKernelGetAttribute)(int *value, CUfunction_attribute attribute, CUkernel k, CUdevice device)
{
    (void)device;
    return get_attribute(fg_function_of(k), value, attribute);
}
CUresult FG(cuKernelSetAttribute)(CUfunction_attribute attribute, int value, CUkernel k, CUdevice device)
{
    (void)device;
    return set_attribute(fg_function_of(k), attribute, value);
}
CUresult FG(cuKernelSetCacheConfig)(CUkernel k, CUfunc_cache config, CUdevice device)
{
    (void)config; (void)device;
    return only_checked((CUfunction)k);
}

static CUresult get_name(const struct fg_function *function, const char **name)
{
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = function->name;
    return CUDA_SUCCESS;
}
CUresult FG(cuFuncGetName)(const char **name, CUfunction f) { return get_name(fg_function_of(f), name); }
CUresult FG(cuKernelGetName)(const char **name, CUkernel k) { return get_name(fg_function_of(k), name); }

CUresult FG(cuFuncIsLoaded)(CUfunctionLoadingState *state, CUfunction f)
{
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return only_checked(f);
}

/* The functions have no parameters that anybody reads. */
CUresult FG(cuFuncGetParamCount)(CUfunction f, size_t *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = 0;
    return only_checked(f);
}
CUresult FG(cuFuncGetParamInfo)(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    (void)index; (void)offset; (void)size;
    return fg_function_of(f) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}
CUresult FG(cuKernelGetParamCount)(CUkernel k, size_t *count) { return FG(cuFuncGetParamCount)((CUfunction)k, count); }
CUresult FG(cuKernelGetParamInfo)(CUkernel k, size_t index, size_t *offset, size_t *size)
{
    return FG(cuFuncGetParamInfo)((CUfunction)k, index, offset, size);
}

/* ---- occupancy ------------------------------------------------------------------------------------------------ */

static CUresult occupancy(int *blocks, CUfunction f, int block)
{
    struct fg_function *function = fg_function_of(f);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || block < 1 || block > MOST_THREADS)
        return CUDA_ERROR_INVALID_VALUE;
    int gpu = function->context ? function->context->gpu : 0;
    int most = (int)fg_state->gpu[gpu].profile.threads_per_sm / ((block + 31) / 32 * 32);
    *blocks = most < 32 ? most : 32;
    return CUDA_SUCCESS;
}
CUresult FG(cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, CUfunction f, int block, size_t shared)
{
    (void)shared;
    return occupancy(blocks, f, block);
}
CUresult FG(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(int *blocks, CUfunction f, int block,
                                                                  size_t shared, unsigned int flags)
{
    (void)shared;
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : occupancy(blocks, f, block);
}
CUresult FG(cuOccupancyMaxPotentialBlockSizeWithFlags)(int *grid, int *block, CUfunction f,
                                                       CUoccupancyB2DSize size_of, size_t shared,
                                                       int limit, unsigned int flags)
{
    (void)size_of; (void)shared; (void)flags;
    int per_sm, length = limit > 0 && limit < MOST_THREADS ? limit : MOST_THREADS;
    if (!grid || !block)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = occupancy(&per_sm, f, length);
    if (result)
        return result;
    struct fg_function *function = fg_function_of(f);
    *block = length;
    *grid = per_sm * (int)fg_state->gpu[function->context ? function->context->gpu : 0].profile.sm_count;
    return CUDA_SUCCESS;
}
CUresult FG(cuOccupancyMaxPotentialBlockSize)(int *grid, int *block, CUfunction f, CUoccupancyB2DSize size_of,
                                              size_t shared, int limit)
{
    return FG(cuOccupancyMaxPotentialBlockSizeWithFlags)(grid, block, f, size_of, shared, limit, 0);
}
CUresult FG(cuOccupancyAvailableDynamicSMemPerBlock)(size_t *shared, CUfunction f, int blocks, int block)
{
    (void)block;
    if (!shared || blocks < 1)
        return CUDA_ERROR_INVALID_VALUE;
    *shared = (48u << 10) / (unsigned)blocks;
    return only_checked(f);
}

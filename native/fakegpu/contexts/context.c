/* Contexts: primary and created ones, and each thread's stack of them. A context costs the GPU
 * context_bytes, as the real one costs some hundred MiB; what was made in it goes with it. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/core.h"
#include "controls/faults.h"

#define STACK 64
static __thread struct fg_context *stack[STACK];
static __thread uint64_t stack_id[STACK];  /* a context's memory may serve another later */
static __thread int depth;
static struct fg_context *contexts;        /* all that ever were; dead ones are used again */
static struct fg_context *primary[FG_GPUS];
static unsigned primary_flags[FG_GPUS];
static uint64_t next_id;


/* ---- finding ------------------------------------------------------------------------------------- */

struct fg_context *fg_context_of(CUcontext handle)
{
    struct fg_context *found = NULL;
    pthread_mutex_lock(&fg_mutex);
    for (struct fg_context *each = contexts; each && !found; each = each->next)
        if (each == (struct fg_context *)handle && each->alive)
            found = each;
    pthread_mutex_unlock(&fg_mutex);
    return found;
}

struct fg_context *fg_current_context(void)
{
    struct fg_context *context = depth ? stack[depth - 1] : NULL;
    return context && context->alive && context->id == stack_id[depth - 1] ? context : NULL;
}

CUresult fg_need_context(struct fg_context **out)
{
    *out = fg_current_context();
    if (!*out)
        return depth && stack[depth - 1] ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
    return fg_gpu_status((*out)->gpu);
}

static CUresult push(struct fg_context *context)
{
    if (depth == STACK)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth] = context;
    stack_id[depth++] = context ? context->id : 0;
    return CUDA_SUCCESS;
}

/* ---- making and ending ----------------------------------------------------------------------------- */

/* sm_count: of a green context, which shares what its GPU's primary context costs; 0: a real one. */
static CUresult make(CUdevice device, unsigned flags, bool is_primary, int sm_count, struct fg_context **out)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = fg_gpu_status(gpu);
    if (result)
        return result;
    const struct fg_profile *profile = &fg_state->gpu[gpu].profile;
    uint64_t cost = sm_count ? profile->green_context_bytes : profile->context_bytes;
    uint64_t slow = fg_fault_number("slow_context_ms", 0);
    if (slow)
        usleep((useconds_t)slow * 1000);
    fg_clock_spend(0);
    result = fg_take_gpu_memory_in_pieces(gpu, cost, profile->block_bytes);
    if (result)
        return result;
    struct fg_context *context = contexts;
    while (context && context->alive)
        context = context->next;
    if (!context) {
        context = calloc(1, sizeof *context);
        if (!context) {
            fg_uncharge(gpu, cost);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        context->next = contexts;
        contexts = context;
    }
    struct fg_context *next = context->next;
    *context = (struct fg_context){
        .next = next, .id = ++next_id, .gpu = gpu, .device = device, .flags = flags, .primary = is_primary,
        .api_version = 3020, .charged = cost, .sm_count = sm_count,
        .limit = {[CU_LIMIT_STACK_SIZE] = 1024, [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
                  [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20, [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
                  [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
                  [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64}};
    fg_lock();
    struct fg_process *row = &fg_state->process[fg_own_process()];
    row->contexts[gpu]++;
    int tag = row->tag;
    fg_unlock();
    const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    unsigned percent = text ? (unsigned)atoi(text) : 0;
    if (sm_count)
        percent = FG_PARTITION | (unsigned)((sm_count * 100 + (int)profile->sm_count / 2) / (int)profile->sm_count);
    context->engine = fg_engine_context_open(fg_own_process(), tag, gpu, percent);
    context->alive = true;
    fg_streams_context_made(context);
    *out = context;
    return CUDA_SUCCESS;
}

static void end(struct fg_context *context)
{
    fg_streams_context_gone(context);
    fg_engine_context_close(context->engine);
    fg_modules_context_gone(context);
    fg_arrays_context_gone(context);
    fg_memory_context_gone(context);
    fg_uncharge(context->gpu, context->charged);
    fg_lock();
    fg_state->process[fg_own_process()].contexts[context->gpu]--;
    fg_unlock();
    if (context->primary) {
        primary[context->gpu] = NULL;
    }
    context->alive = false;
}

CUresult fg_green_context_make(CUdevice device, int sm_count, struct fg_context **out)
{
    return make(device, 0, false, sm_count, out);
}

void fg_green_context_end(struct fg_context *context) { end(context); }

static CUresult create(CUcontext *out, CUdevice device, unsigned flags, unsigned api_version)
{
    if (!out || flags & ~0x1ffu)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_context *context;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = make(device, flags, false, 0, &context);
    pthread_mutex_unlock(&fg_mutex);
    if (result)
        return result;
    context->api_version = api_version;
    result = push(context);
    if (result) {
        pthread_mutex_lock(&fg_mutex);
        end(context);
        pthread_mutex_unlock(&fg_mutex);
        return result;
    }
    *out = (CUcontext)context;
    return CUDA_SUCCESS;
}

CUresult FG(cuCtxCreate)(CUcontext *out, unsigned int flags, CUdevice device)
{
    return create(out, device, flags, 3010);
}

CUresult FG(cuCtxCreate_v2)(CUcontext *out, unsigned int flags, CUdevice device)
{
    return create(out, device, flags, 3020);
}

CUresult FG(cuCtxCreate_v3)(CUcontext *out, CUexecAffinityParam *affinity, int count, unsigned int flags,
                            CUdevice device)
{
    if ((affinity != NULL) != (count > 0))
        return CUDA_ERROR_INVALID_VALUE;
    return affinity ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(out, device, flags, 3030);
}

CUresult FG(cuCtxCreate_v4)(CUcontext *out, CUctxCreateParams *parameters, unsigned int flags, CUdevice device)
{
    if (parameters && parameters->cigParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (parameters && parameters->numExecAffinityParams)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(out, device, flags, 3040);
}

CUresult FG(cuCtxDestroy_v2)(CUcontext handle)
{
    CUresult result = CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&fg_mutex);
    struct fg_context *context = fg_context_of(handle);
    if (context && !context->primary && !context->sm_count) {
        if (context == fg_current_context())
            depth--;
        end(context);
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuCtxDestroy)(CUcontext handle) { return FG(cuCtxDestroy_v2)(handle); }

CUresult FG(cuCtxAttach)(CUcontext *out, unsigned int flags)
{
    struct fg_context *context = fg_current_context();
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)context;
    return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult FG(cuCtxDetach)(CUcontext handle)
{
    return fg_context_of(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* ---- primary contexts -------------------------------------------------------------------------------- */

CUresult FG(cuDevicePrimaryCtxRetain)(CUcontext *out, CUdevice device)
{
    int gpu = fg_gpu_of_device(device);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&fg_mutex);
    if (!primary[gpu])
        result = make(device, primary_flags[gpu], true, 0, &primary[gpu]);
    if (!result) {
        primary[gpu]->retained++;
        *out = (CUcontext)primary[gpu];
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

static CUresult release(CUdevice device, bool all)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&fg_mutex);
    if (!primary[gpu])
        result = all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    else if (all || --primary[gpu]->retained == 0)
        end(primary[gpu]);
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuDevicePrimaryCtxRelease_v2)(CUdevice device) { return release(device, false); }
CUresult FG(cuDevicePrimaryCtxRelease)(CUdevice device) { return release(device, false); }
CUresult FG(cuDevicePrimaryCtxReset_v2)(CUdevice device) { return release(device, true); }
CUresult FG(cuDevicePrimaryCtxReset)(CUdevice device) { return release(device, true); }

CUresult FG(cuDevicePrimaryCtxSetFlags_v2)(CUdevice device, unsigned int flags)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~0x1ffu)
        return CUDA_ERROR_INVALID_VALUE;
    primary_flags[gpu] = flags;
    return CUDA_SUCCESS;
}

CUresult FG(cuDevicePrimaryCtxSetFlags)(CUdevice device, unsigned int flags)
{
    return FG(cuDevicePrimaryCtxSetFlags_v2)(device, flags);
}

CUresult FG(cuDevicePrimaryCtxGetState)(CUdevice device, unsigned int *flags, int *active)
{
    int gpu = fg_gpu_of_device(device);
    if (gpu < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = primary_flags[gpu];
    *active = primary[gpu] != NULL;
    return CUDA_SUCCESS;
}

/* ---- the current one ----------------------------------------------------------------------------------- */

CUresult FG(cuCtxPushCurrent_v2)(CUcontext handle)
{
    struct fg_context *context = fg_context_of(handle);
    return context ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult FG(cuCtxPushCurrent)(CUcontext handle) { return FG(cuCtxPushCurrent_v2)(handle); }

CUresult FG(cuCtxPopCurrent_v2)(CUcontext *out)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (out)
        *out = (CUcontext)stack[depth];
    return CUDA_SUCCESS;
}

CUresult FG(cuCtxPopCurrent)(CUcontext *out) { return FG(cuCtxPopCurrent_v2)(out); }

CUresult FG(cuCtxSetCurrent)(CUcontext handle)
{
    struct fg_context *context = handle ? fg_context_of(handle) : NULL;
    if (handle && !context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth)
        depth--;
    return context ? push(context) : CUDA_SUCCESS;
}

CUresult FG(cuCtxGetCurrent)(CUcontext *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = depth ? (CUcontext)stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

CUresult FG(cuCtxGetDevice_v2)(CUdevice *device, CUcontext handle)
{
    struct fg_context *context = handle ? fg_context_of(handle) : fg_current_context();
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult FG(cuCtxGetDevice)(CUdevice *device) { return FG(cuCtxGetDevice_v2)(device, NULL); }

CUresult FG(cuCtxGetFlags)(unsigned int *flags)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (!result && !flags)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        *flags = context->flags;
    return result;
}

CUresult FG(cuCtxSetFlags)(unsigned int flags)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (!result)
        context->flags = flags;
    return result;
}

CUresult FG(cuCtxGetId)(CUcontext handle, unsigned long long *id)
{
    struct fg_context *context = handle ? fg_context_of(handle) : fg_current_context();
    if (!context)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult FG(cuCtxGetApiVersion)(CUcontext handle, unsigned int *version)
{
    struct fg_context *context = handle ? fg_context_of(handle) : fg_current_context();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version;
    return CUDA_SUCCESS;
}

/* Stack, heap and FIFO live in device memory: setting a limit above its default is paid for, a block
 * at a time, and given back when it is set lower. The stack's share is one per resident thread. */
static uint64_t limit_bytes(const struct fg_context *context, const size_t *limit)
{
    const struct fg_profile *profile = &fg_state->gpu[context->gpu].profile;
    uint64_t stacks = limit[CU_LIMIT_STACK_SIZE] > 1024 ? limit[CU_LIMIT_STACK_SIZE] - 1024 : 0;
    uint64_t heap = limit[CU_LIMIT_MALLOC_HEAP_SIZE] > 8 << 20 ? limit[CU_LIMIT_MALLOC_HEAP_SIZE] - (8 << 20) : 0;
    uint64_t fifo = limit[CU_LIMIT_PRINTF_FIFO_SIZE] > 1 << 20 ? limit[CU_LIMIT_PRINTF_FIFO_SIZE] - (1 << 20) : 0;
    return fg_round_up(stacks * profile->sm_count * profile->threads_per_sm, profile->block_bytes) +
           fg_round_up(heap, profile->block_bytes) + fg_round_up(fifo, profile->block_bytes);
}

CUresult FG(cuCtxSetLimit)(CUlimit which, size_t value)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    if ((unsigned)which >= sizeof context->limit / sizeof context->limit[0])
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (which == CU_LIMIT_STACK_SIZE && value > 512 << 10)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    size_t wanted[sizeof context->limit / sizeof context->limit[0]];
    memcpy(wanted, context->limit, sizeof wanted);
    wanted[which] = value;
    uint64_t before = limit_bytes(context, context->limit), after = limit_bytes(context, wanted);
    if (after > before && fg_charge(context->gpu, after - before)) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        if (after < before)
            fg_uncharge(context->gpu, before - after);
        context->charged += after - before;
        context->limit[which] = value;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuCtxGetLimit)(size_t *value, CUlimit which)
{
    struct fg_context *context;
    CUresult result = fg_need_context(&context);
    if (result)
        return result;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)which >= sizeof context->limit / sizeof context->limit[0])
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = context->limit[which];
    return CUDA_SUCCESS;
}

CUresult FG(cuCtxGetCacheConfig)(CUfunc_cache *config)
{
    if (config)
        *config = CU_FUNC_CACHE_PREFER_NONE;
    return config ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuCtxSetCacheConfig)(CUfunc_cache config) { (void)config; return CUDA_SUCCESS; }
CUresult FG(cuCtxGetSharedMemConfig)(CUsharedconfig *config)
{
    if (config)
        *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return config ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuCtxSetSharedMemConfig)(CUsharedconfig config) { (void)config; return CUDA_SUCCESS; }
CUresult FG(cuCtxResetPersistingL2Cache)(void) { return CUDA_SUCCESS; }
CUresult FG(cuCtxEnablePeerAccess)(CUcontext peer, unsigned int flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : fg_context_of(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult FG(cuCtxDisablePeerAccess)(CUcontext peer)
{
    return fg_context_of(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

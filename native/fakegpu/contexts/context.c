/* Contexts: making and ending them. A context costs the GPU context_bytes, as the real one costs
 * some hundred MiB; what was made in it goes with it. */
#define _GNU_SOURCE
#include "contexts/context.h"

#include <stdlib.h>
#include <unistd.h>

#include "arrays/array.h"
#include "clock/clock.h"
#include "controls/faults.h"
#include "engine/engine.h"
#include "memory/gpu_memory.h"
#include "memory/heap.h"
#include "modules/module.h"
#include "state/ledger.h"
#include "state/process_table.h"
#include "streams/stream.h"

CUresult fg_context_make(CUdevice device, unsigned flags, bool is_primary, int sm_count,
                         struct fg_context **out)
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
    fg_enter_instance(gpu);
    result = fg_take_gpu_memory_in_pieces(gpu, cost, profile->block_bytes);
    if (result)
        return result;
    struct fg_context *context = fg_context_vacant();
    if (!context) {
        fg_uncharge(gpu, cost);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *context = (struct fg_context){.next = context->next,
                                   .id = context->id,
                                   .gpu = gpu,
                                   .device = device,
                                   .flags = flags,
                                   .primary = is_primary,
                                   .api_version = 3020,
                                   .charged = cost,
                                   .sm_count = sm_count,
                                   .limit = {[CU_LIMIT_STACK_SIZE] = 1024,
                                             [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
                                             [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
                                             [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
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
        percent = FG_PARTITION | (unsigned)((sm_count * 100 + (int)profile->sm_count / 2) /
                                            (int)profile->sm_count);
    context->engine = fg_engine_context_open(fg_own_process(), tag, gpu, percent);
    context->alive = true;
    fg_streams_context_made(context);
    *out = context;
    return CUDA_SUCCESS;
}

void fg_context_end(struct fg_context *context)
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
    context->alive = false;
}

static CUresult create(CUcontext *out, CUdevice device, unsigned flags, unsigned api_version)
{
    if (!out || flags & ~0x1ffu)
        return CUDA_ERROR_INVALID_VALUE;
    struct fg_context *context;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = fg_context_make(device, flags, false, 0, &context);
    pthread_mutex_unlock(&fg_mutex);
    if (result)
        return result;
    context->api_version = api_version;
    result = fg_context_push(context);
    if (result) {
        pthread_mutex_lock(&fg_mutex);
        fg_context_end(context);
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

CUresult FG(cuCtxCreate_v3)(CUcontext *out, CUexecAffinityParam *affinity, int count,
                            unsigned int flags, CUdevice device)
{
    if ((affinity != NULL) != (count > 0))
        return CUDA_ERROR_INVALID_VALUE;
    return affinity ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(out, device, flags, 3030);
}

CUresult FG(cuCtxCreate_v4)(CUcontext *out, CUctxCreateParams *parameters, unsigned int flags,
                            CUdevice device)
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
        fg_context_pop_if_current(context);
        fg_context_end(context);
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuCtxDestroy)(CUcontext handle)
{
    return FG(cuCtxDestroy_v2)(handle);
}

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

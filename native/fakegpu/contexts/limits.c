/* Limits of a context, and the device memory that they take. */
#include <string.h>

#include "contexts/context.h"
#include "memory/space.h"
#include "state/ledger.h"

/* Stack, heap and FIFO live in device memory: setting a limit above its default is paid for, a
 * block at a time, and given back when it is set lower. The stack's share is one per resident
 * thread. */
static uint64_t limit_bytes(const struct fg_context *context, const size_t *limit)
{
    const struct fg_profile *profile = &fg_state->gpu[context->gpu].profile;
    uint64_t stacks = limit[CU_LIMIT_STACK_SIZE] > 1024 ? limit[CU_LIMIT_STACK_SIZE] - 1024 : 0;
    uint64_t heap = limit[CU_LIMIT_MALLOC_HEAP_SIZE] > 8 << 20
                        ? limit[CU_LIMIT_MALLOC_HEAP_SIZE] - (8 << 20)
                        : 0;
    uint64_t fifo = limit[CU_LIMIT_PRINTF_FIFO_SIZE] > 1 << 20
                        ? limit[CU_LIMIT_PRINTF_FIFO_SIZE] - (1 << 20)
                        : 0;
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

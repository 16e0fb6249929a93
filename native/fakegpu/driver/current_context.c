/* Each thread's stack of contexts, and the table of all. */
#include "driver/current_context.h"

#include <stdlib.h>

#define STACK 64
static __thread struct fg_context *stack[STACK];
static __thread uint64_t stack_id[STACK]; /* a context's memory may serve another later */
static __thread int depth;
static struct fg_context *contexts; /* all that ever were; dead ones are used again */
static uint64_t next_id;

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
        return depth && stack[depth - 1] ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                         : CUDA_ERROR_INVALID_CONTEXT;
    return fg_gpu_status((*out)->gpu);
}

CUresult fg_context_push(struct fg_context *context)
{
    if (depth == STACK)
        return CUDA_ERROR_INVALID_VALUE;
    stack[depth] = context;
    stack_id[depth++] = context ? context->id : 0;
    return CUDA_SUCCESS;
}

void fg_context_pop_if_current(const struct fg_context *context)
{
    if (context == fg_current_context())
        depth--;
}

struct fg_context *fg_context_vacant(void)
{
    struct fg_context *context = contexts;
    while (context && context->alive)
        context = context->next;
    if (!context) {
        context = calloc(1, sizeof *context);
        if (!context)
            return NULL;
        context->next = contexts;
        contexts = context;
    }
    *context = (struct fg_context){.next = context->next, .id = ++next_id};
    return context;
}

/* ---- the current one ------------------------------------------------------------------------- */

CUresult FG(cuCtxPushCurrent_v2)(CUcontext handle)
{
    struct fg_context *context = fg_context_of(handle);
    return context ? fg_context_push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult FG(cuCtxPushCurrent)(CUcontext handle)
{
    return FG(cuCtxPushCurrent_v2)(handle);
}

CUresult FG(cuCtxPopCurrent_v2)(CUcontext *out)
{
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    depth--;
    if (out)
        *out = (CUcontext)stack[depth];
    return CUDA_SUCCESS;
}

CUresult FG(cuCtxPopCurrent)(CUcontext *out)
{
    return FG(cuCtxPopCurrent_v2)(out);
}

CUresult FG(cuCtxSetCurrent)(CUcontext handle)
{
    struct fg_context *context = handle ? fg_context_of(handle) : NULL;
    if (handle && !context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (depth)
        depth--;
    return context ? fg_context_push(context) : CUDA_SUCCESS;
}

CUresult FG(cuCtxGetCurrent)(CUcontext *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = depth ? (CUcontext)stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

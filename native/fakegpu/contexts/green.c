/* Green contexts: parts of a GPU's SMs. One holds its GPU's primary context and costs
 * green_context_bytes beside. */
#include <stdlib.h>
#include <string.h>

#include "contexts/context.h"
#include "streams/stream.h"

struct green {
    struct green *next;
    struct fg_context *context;
    CUdevice device;
};
struct description {
    uint64_t magic;
    unsigned sm_count;
};
#define MAGIC 0x6e65657267656b61ull
static struct green *greens;

static unsigned smallest(int gpu)
{
    return fg_state->gpu[gpu].profile.capability_major >= 9 ? 8 : 2;
}

static void fill(CUdevResource *out, int gpu, unsigned sm_count)
{
    memset(out, 0, sizeof *out);
    out->type = CU_DEV_RESOURCE_TYPE_SM;
    out->sm.smCount = sm_count;
    out->sm.minSmPartitionSize = out->sm.smCoscheduledAlignment = smallest(gpu);
    memcpy(out->_internal_padding, &gpu, sizeof gpu);
}

static CUresult get_resource(int gpu, unsigned sm_count, CUdevResource *out, CUdevResourceType type)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    fill(out, gpu, sm_count ? sm_count : (unsigned)fg_state->gpu[gpu].profile.sm_count);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetDevResource)(CUdevice device, CUdevResource *out, CUdevResourceType type)
{
    int gpu = fg_gpu_of_device(device);
    return gpu < 0 ? CUDA_ERROR_INVALID_DEVICE : get_resource(gpu, 0, out, type);
}

CUresult FG(cuCtxGetDevResource)(CUcontext handle, CUdevResource *out, CUdevResourceType type)
{
    struct fg_context *context = fg_context_of(handle);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return get_resource(context->gpu, (unsigned)context->sm_count, out, type);
}

CUresult FG(cuDevSmResourceSplitByCount)(CUdevResource *result, unsigned int *groups,
                                         const CUdevResource *input, CUdevResource *remainder,
                                         unsigned int flags, unsigned int least)
{
    int gpu;
    (void)flags;
    if (!groups || !input || input->type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&gpu, input->_internal_padding, sizeof gpu);
    unsigned step = smallest(gpu), each = (least + step - 1) / step * step;
    each = each ? each : step;
    unsigned most = input->sm.smCount / each;
    if (!most)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (!result) {
        *groups = most;
        return CUDA_SUCCESS;
    }
    *groups = *groups < most ? *groups : most;
    for (unsigned i = 0; i < *groups; i++)
        fill(&result[i], gpu, each);
    if (remainder)
        fill(remainder, gpu, input->sm.smCount - *groups * each);
    return CUDA_SUCCESS;
}

CUresult FG(cuDevResourceGenerateDesc)(CUdevResourceDesc *out, CUdevResource *resources,
                                       unsigned int count)
{
    struct description *made = out && resources && count ? calloc(1, sizeof *made) : NULL;
    if (!made)
        return CUDA_ERROR_INVALID_VALUE;
    made->magic = MAGIC;
    for (unsigned i = 0; i < count; i++)
        made->sm_count +=
            resources[i].type == CU_DEV_RESOURCE_TYPE_SM ? resources[i].sm.smCount : 0;
    *out = (CUdevResourceDesc)made; /* the API has no way to give it back */
    return CUDA_SUCCESS;
}

static struct green *find(CUgreenCtx handle)
{
    struct green *each = greens;
    while (each && each != (struct green *)handle)
        each = each->next;
    return each;
}

CUresult FG(cuGreenCtxCreate)(CUgreenCtx *out, CUdevResourceDesc handle, CUdevice device,
                              unsigned int flags)
{
    const struct description *wanted = (const struct description *)handle;
    CUcontext primary;
    if (!out || !wanted || wanted->magic != MAGIC || !wanted->sm_count ||
        !(flags & CU_GREEN_CTX_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = FG(cuDevicePrimaryCtxRetain)(&primary, device);
    if (!result) {
        struct green *green = calloc(1, sizeof *green);
        if (!green)
            abort();
        result = fg_context_make(device, 0, false, (int)wanted->sm_count, &green->context);
        if (result) {
            FG(cuDevicePrimaryCtxRelease_v2)(device);
            free(green);
        } else {
            green->device = device;
            green->next = greens;
            greens = green;
            *out = (CUgreenCtx)green;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuGreenCtxDestroy)(CUgreenCtx handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct green *green = find(handle), **at = &greens;
    if (green) {
        while (*at != green)
            at = &(*at)->next;
        *at = green->next;
        fg_context_end(green->context);
        FG(cuDevicePrimaryCtxRelease_v2)(green->device);
        free(green);
    }
    pthread_mutex_unlock(&fg_mutex);
    return green ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult FG(cuCtxFromGreenCtx)(CUcontext *out, CUgreenCtx handle)
{
    pthread_mutex_lock(&fg_mutex);
    struct green *green = find(handle);
    if (green && out)
        *out = (CUcontext)green->context;
    pthread_mutex_unlock(&fg_mutex);
    return !green ? CUDA_ERROR_INVALID_CONTEXT : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuGreenCtxGetDevResource)(CUgreenCtx handle, CUdevResource *out, CUdevResourceType type)
{
    CUcontext context;
    CUresult result = FG(cuCtxFromGreenCtx)(&context, handle);
    return result ? result : FG(cuCtxGetDevResource)(context, out, type);
}

CUresult FG(cuGreenCtxStreamCreate)(CUstream *out, CUgreenCtx green, unsigned int flags,
                                    int priority)
{
    CUcontext context;
    CUresult result = FG(cuCtxFromGreenCtx)(&context, green);
    if (result)
        return result;
    if (!out || flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUstream)fg_stream_new((struct fg_context *)context, flags, priority,
                                   FG_STREAM_NONBLOCKING);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Primary contexts: one per GPU of the process, counted. */
#include "contexts/context.h"

static struct fg_context *primary[FG_GPUS];
static unsigned primary_flags[FG_GPUS];

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
        result = fg_context_make(device, primary_flags[gpu], true, 0, &primary[gpu]);
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
    if (!primary[gpu]) {
        result = all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    } else if (all || --primary[gpu]->retained == 0) {
        fg_context_end(primary[gpu]);
        primary[gpu] = NULL;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuDevicePrimaryCtxRelease_v2)(CUdevice device)
{
    return release(device, false);
}
CUresult FG(cuDevicePrimaryCtxRelease)(CUdevice device)
{
    return release(device, false);
}
CUresult FG(cuDevicePrimaryCtxReset_v2)(CUdevice device)
{
    return release(device, true);
}
CUresult FG(cuDevicePrimaryCtxReset)(CUdevice device)
{
    return release(device, true);
}

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

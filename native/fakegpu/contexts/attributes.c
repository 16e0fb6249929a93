/* What a context says of itself, and settings that change nothing here. */
#include "contexts/context.h"

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

CUresult FG(cuCtxGetDevice)(CUdevice *device)
{
    return FG(cuCtxGetDevice_v2)(device, NULL);
}

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

CUresult FG(cuCtxGetCacheConfig)(CUfunc_cache *config)
{
    if (config)
        *config = CU_FUNC_CACHE_PREFER_NONE;
    return config ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuCtxSetCacheConfig)(CUfunc_cache config)
{
    (void)config;
    return CUDA_SUCCESS;
}
CUresult FG(cuCtxGetSharedMemConfig)(CUsharedconfig *config)
{
    if (config)
        *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return config ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult FG(cuCtxSetSharedMemConfig)(CUsharedconfig config)
{
    (void)config;
    return CUDA_SUCCESS;
}
CUresult FG(cuCtxResetPersistingL2Cache)(void)
{
    return CUDA_SUCCESS;
}
CUresult FG(cuCtxEnablePeerAccess)(CUcontext peer, unsigned int flags)
{
    return flags                 ? CUDA_ERROR_INVALID_VALUE
           : fg_context_of(peer) ? CUDA_SUCCESS
                                 : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult FG(cuCtxDisablePeerAccess)(CUcontext peer)
{
    return fg_context_of(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* What a function says of itself: attributes, name, parameters. */
#include "modules/function.h"

static CUresult only_checked(CUfunction f)
{
    return fg_function_of(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult FG(cuFuncSetCacheConfig)(CUfunction f, CUfunc_cache config)
{
    (void)config;
    return only_checked(f);
}
CUresult FG(cuFuncSetSharedMemConfig)(CUfunction f, CUsharedconfig config)
{
    (void)config;
    return only_checked(f);
}
CUresult FG(cuFuncLoad)(CUfunction f)
{
    return only_checked(f);
}

static CUresult get_attribute(const struct fg_function *function, int *value,
                              CUfunction_attribute attribute)
{
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    int gpu = function->context ? function->context->gpu : 0;
    int arch = (int)(fg_state->gpu[gpu].profile.capability_major * 10 +
                     fg_state->gpu[gpu].profile.capability_minor);
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? FG_MOST_THREADS
             : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS            ? 32
             : attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION ||
                     attribute == CU_FUNC_ATTRIBUTE_BINARY_VERSION
                 ? arch
             : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                 ? (function->dynamic_shared ? function->dynamic_shared : 48 << 10)
             : attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ? function->carveout
                                                                               : 0;
    return CUDA_SUCCESS;
}

static CUresult set_attribute(struct fg_function *function, CUfunction_attribute attribute,
                              int value)
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
CUresult FG(cuKernelGetAttribute)(int *value, CUfunction_attribute attribute, CUkernel k,
                                  CUdevice device)
{
    (void)device;
    return get_attribute(fg_function_of(k), value, attribute);
}
CUresult FG(cuKernelSetAttribute)(CUfunction_attribute attribute, int value, CUkernel k,
                                  CUdevice device)
{
    (void)device;
    return set_attribute(fg_function_of(k), attribute, value);
}
CUresult FG(cuKernelSetCacheConfig)(CUkernel k, CUfunc_cache config, CUdevice device)
{
    (void)config;
    (void)device;
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
CUresult FG(cuFuncGetName)(const char **name, CUfunction f)
{
    return get_name(fg_function_of(f), name);
}
CUresult FG(cuKernelGetName)(const char **name, CUkernel k)
{
    return get_name(fg_function_of(k), name);
}

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
    (void)index;
    (void)offset;
    (void)size;
    return fg_function_of(f) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}
CUresult FG(cuKernelGetParamCount)(CUkernel k, size_t *count)
{
    return FG(cuFuncGetParamCount)((CUfunction)k, count);
}
CUresult FG(cuKernelGetParamInfo)(CUkernel k, size_t index, size_t *offset, size_t *size)
{
    return FG(cuFuncGetParamInfo)((CUfunction)k, index, offset, size);
}

/* The launch interface of CUDA 1 to 3: block shape and parameters first, then the launch. */
#include "modules/function.h"
#include "streams/launch.h"

CUresult FG(cuFuncSetBlockShape)(CUfunction f, int x, int y, int z)
{
    struct fg_function *function = fg_function_of(f);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (x < 1 || y < 1 || z < 1 || (int64_t)x * y * z > FG_MOST_THREADS)
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
    return fg_launch(f, (unsigned)width, (unsigned)height, 1, block[0], block[1], block[2], 0,
                     stream, false, NULL, NULL);
}
CUresult FG(cuLaunch)(CUfunction f)
{
    return old_launch(f, 1, 1, NULL);
}
CUresult FG(cuLaunchGrid)(CUfunction f, int width, int height)
{
    return old_launch(f, width, height, NULL);
}
CUresult FG(cuLaunchGridAsync)(CUfunction f, int width, int height, CUstream stream)
{
    return old_launch(f, width, height, stream);
}

static CUresult only_checked(CUfunction f)
{
    return fg_function_of(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult FG(cuFuncSetSharedSize)(CUfunction f, unsigned int bytes)
{
    (void)bytes;
    return only_checked(f);
}
CUresult FG(cuParamSetSize)(CUfunction f, unsigned int bytes)
{
    (void)bytes;
    return only_checked(f);
}
CUresult FG(cuParamSeti)(CUfunction f, int at, unsigned int v)
{
    (void)at;
    (void)v;
    return only_checked(f);
}
CUresult FG(cuParamSetf)(CUfunction f, int at, float v)
{
    (void)at;
    (void)v;
    return only_checked(f);
}
CUresult FG(cuParamSetv)(CUfunction f, int at, void *p, unsigned int n)
{
    (void)at;
    (void)p;
    (void)n;
    return only_checked(f);
}

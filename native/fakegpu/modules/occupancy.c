/* Occupancy: how many blocks of a function fit on an SM. */
#include "modules/function.h"

static CUresult occupancy(int *blocks, CUfunction f, int block)
{
    struct fg_function *function = fg_function_of(f);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || block < 1 || block > FG_MOST_THREADS)
        return CUDA_ERROR_INVALID_VALUE;
    int gpu = function->context ? function->context->gpu : 0;
    int most = (int)fg_state->gpu[gpu].profile.threads_per_sm / ((block + 31) / 32 * 32);
    *blocks = most < 32 ? most : 32;
    return CUDA_SUCCESS;
}
CUresult FG(cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, CUfunction f, int block,
                                                         size_t shared)
{
    (void)shared;
    return occupancy(blocks, f, block);
}
CUresult FG(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(int *blocks, CUfunction f,
                                                                  int block, size_t shared,
                                                                  unsigned int flags)
{
    (void)shared;
    return flags > 1 ? CUDA_ERROR_INVALID_VALUE : occupancy(blocks, f, block);
}
CUresult FG(cuOccupancyMaxPotentialBlockSizeWithFlags)(int *grid, int *block, CUfunction f,
                                                       CUoccupancyB2DSize size_of, size_t shared,
                                                       int limit, unsigned int flags)
{
    (void)size_of;
    (void)shared;
    (void)flags;
    int per_sm, length = limit > 0 && limit < FG_MOST_THREADS ? limit : FG_MOST_THREADS;
    if (!grid || !block)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = occupancy(&per_sm, f, length);
    if (result)
        return result;
    struct fg_function *function = fg_function_of(f);
    *block = length;
    *grid = per_sm *
            (int)fg_state->gpu[function->context ? function->context->gpu : 0].profile.sm_count;
    return CUDA_SUCCESS;
}
CUresult FG(cuOccupancyMaxPotentialBlockSize)(int *grid, int *block, CUfunction f,
                                              CUoccupancyB2DSize size_of, size_t shared, int limit)
{
    return FG(cuOccupancyMaxPotentialBlockSizeWithFlags)(grid, block, f, size_of, shared, limit, 0);
}
CUresult FG(cuOccupancyAvailableDynamicSMemPerBlock)(size_t *shared, CUfunction f, int blocks,
                                                     int block)
{
    (void)block;
    if (!shared || blocks < 1)
        return CUDA_ERROR_INVALID_VALUE;
    *shared = (48u << 10) / (unsigned)blocks;
    return fg_function_of(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

#include "memory/gpu_memory.h"

#include "controls/faults.h"
#include "state/ledger.h"

static bool (*release_unused)(int gpu);

void fg_when_gpu_memory_is_short(bool (*release)(int gpu))
{
    release_unused = release;
}

static CUresult take(int gpu, uint64_t bytes, uint64_t largest, int (*charge)(int, uint64_t))
{
    if (fg_fault_memory(gpu, largest))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!charge(gpu, bytes) || (release_unused && release_unused(gpu) && !charge(gpu, bytes)))
        return CUDA_SUCCESS;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fg_take_gpu_memory(int gpu, uint64_t bytes)
{
    return take(gpu, bytes, bytes, fg_charge);
}
CUresult fg_take_managed_memory(int gpu, uint64_t bytes)
{
    return take(gpu, bytes, bytes, fg_charge_managed);
}

CUresult fg_take_gpu_memory_in_pieces(int gpu, uint64_t bytes, uint64_t largest)
{
    return take(gpu, bytes, largest, fg_charge);
}

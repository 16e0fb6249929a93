/* What CUDA tells about memory: the limit is the GPU, and what the container holds is what is used.
 *
 * Where the limit was lowered below what is held, used exceeds total and nothing is free: zero,
 * never a wrapped number. Neither free nor total is more than the GPU itself has, whatever the
 * limit. */
#include <limits.h>

#include "ledger/ledger.h"
#include "pools/pools.h"
#include "views/views.h"

bool vg_memory_view(int row, uint64_t *total, uint64_t *used)
{
    uint64_t limit = row >= 0 ? vg_slice(row) : 0;
    if (!limit)
        return false;
    vg_pools_refresh();
    *total = limit;
    *used = vg_used(row);
    return true;
}

VG_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    VG_ENTER();
    CUresult result = REAL(cuMemGetInfo_v2)(free, total);
    uint64_t limit, used;
    if (result == CUDA_SUCCESS && vg_memory_view(vg_current_row(), &limit, &used)) {
        uint64_t left = used < limit ? limit - used : 0;
        *free = *free < left ? *free : left;
        *total = *total < limit ? *total : limit;
    }
    return result;
}

static unsigned int narrow(uint64_t bytes)
{
    return bytes < UINT_MAX ? (unsigned int)bytes : UINT_MAX;
}

/* of CUDA 3.1 and before */
VG_EXPORT CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    VG_ENTER();
    CUresult result = REAL(cuMemGetInfo)(free, total);
    uint64_t limit, used;
    if (result == CUDA_SUCCESS && vg_memory_view(vg_current_row(), &limit, &used)) {
        unsigned int left = narrow(used < limit ? limit - used : 0);
        *free = *free < left ? *free : left;
        *total = *total < narrow(limit) ? *total : narrow(limit);
    }
    return result;
}

VG_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    VG_ENTER();
    CUresult result = REAL(cuDeviceTotalMem_v2)(bytes, device);
    uint64_t limit = 0;
    int row = result == CUDA_SUCCESS ? vg_row(device) : -1;
    if (row >= 0 && (limit = vg_slice(row)) && limit < *bytes)
        *bytes = limit;
    return result;
}

VG_EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    VG_ENTER();
    CUresult result = REAL(cuDeviceTotalMem)(bytes, device);
    uint64_t limit = 0;
    int row = result == CUDA_SUCCESS ? vg_row(device) : -1;
    if (row >= 0 && (limit = vg_slice(row)) && narrow(limit) < *bytes)
        *bytes = narrow(limit);
    return result;
}

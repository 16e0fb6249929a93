/* Hooks of page-locked host memory: cuMemAllocHost, cuMemHostAlloc, cuMemHostRegister. */
#include "ledger/ledger.h"

static CUresult locked(CUresult result, const void *address, uint64_t bytes, bool registered)
{
    if (result != CUDA_SUCCESS)
        vg_host_release(bytes);
    else
        vg_record_put(&(struct vg_record){.kind = registered ? VG_KIND_REGISTERED : VG_KIND_HOST,
                                          .key = (uint64_t)address,
                                          .row = -1,
                                          .bytes = bytes,
                                          .context = vg_context()});
    return result;
}

VG_EXPORT CUresult cuMemAllocHost_v2(void **address, size_t bytes)
{
    VG_ENTER();
    if (!vg_host_reserve(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocHost_v2)(address, bytes);
    return locked(result, result ? NULL : *address, bytes, false);
}

VG_EXPORT CUresult cuMemAllocHost(void **address, unsigned int bytes)
{
    VG_ENTER();
    if (!vg_host_reserve(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocHost)(address, bytes);
    return locked(result, result ? NULL : *address, bytes, false);
}

VG_EXPORT CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    VG_ENTER();
    if (!vg_host_reserve(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemHostAlloc)(address, bytes, flags);
    return locked(result, result ? NULL : *address, bytes, false);
}

VG_EXPORT CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags)
{
    VG_ENTER();
    if (!vg_host_reserve(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return locked(REAL(cuMemHostRegister_v2)(address, bytes, flags), address, bytes, true);
}

VG_EXPORT CUresult cuMemHostRegister(void *address, size_t bytes, unsigned int flags)
{
    VG_ENTER();
    if (!vg_host_reserve(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return locked(REAL(cuMemHostRegister)(address, bytes, flags), address, bytes, true);
}

static CUresult end_locked(CUresult (*end)(void *), void *address, enum vg_kind kind)
{
    struct vg_record record;
    bool ours = vg_record_take(kind, (uint64_t)address, &record);
    CUresult result = end(address);
    if (ours && result == CUDA_SUCCESS)
        vg_host_release(record.bytes);
    else if (ours)
        vg_record_put(&record);
    return result;
}

VG_EXPORT CUresult cuMemFreeHost(void *address)
{
    VG_ENTER();
    return end_locked(REAL(cuMemFreeHost), address, VG_KIND_HOST);
}

VG_EXPORT CUresult cuMemHostUnregister(void *address)
{
    VG_ENTER();
    return end_locked(REAL(cuMemHostUnregister), address, VG_KIND_REGISTERED);
}

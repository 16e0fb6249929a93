/* Page-locked host memory: counted per process, and limited where the node sets a limit.
 *
 * One word per slot is both announcement and holding: add, sum over all slots, and take back where the
 * sum exceeds the limit. The argument of ledger.c holds for it. Two that meet at the limit may both be
 * refused; host memory is asked for rarely enough. */
#include "ledger/memory.h"

static uint64_t vg_host_used(void)
{
    uint64_t sum = 0, used = atomic_load(&vg_counters->slots_used);
    for (uint64_t i = 0; i < used && i < VG_SLOTS; i++)
        if (__builtin_add_overflow(sum, atomic_load(&vg_counters->slot[i].host_bytes), &sum))
            return UINT64_MAX;
    return sum;
}

void vg_host_release(uint64_t bytes)
{
    struct vg_slot *mine = vg_slot();
    if (!mine)
        return;
    uint64_t now = atomic_load(&mine->host_bytes);
    while (!atomic_compare_exchange_weak(&mine->host_bytes, &now, now > bytes ? now - bytes : 0))
        ;
}

bool vg_host_reserve(uint64_t bytes)
{
    struct vg_slot *mine = vg_slot();
    if (!mine)
        return true;
    uint64_t limit = __atomic_load_n(&vg_limits->host_limit, __ATOMIC_SEQ_CST);
    if (limit && bytes > limit)
        return false;
    atomic_fetch_add(&mine->host_bytes, bytes);
    if (!limit || vg_host_used() <= limit || (vg_reap() && vg_host_used() <= limit))
        return true;
    vg_host_release(bytes);
    return false;
}

static CUresult vg_locked(CUresult result, const void *address, uint64_t bytes, bool registered)
{
    if (result != CUDA_SUCCESS)
        vg_host_release(bytes);
    else
        vg_book_put(&(struct vg_record){.kind = registered ? VG_KIND_REGISTERED : VG_KIND_HOST, .key = (uint64_t)address,
                                        .row = -1, .bytes = bytes, .context = vg_context()});
    return result;
}

VG_EXPORT CUresult cuMemAllocHost_v2(void **address, size_t bytes)
{
    VG_ENTER();
    if (!vg_host_reserve(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocHost_v2)(address, bytes);
    return vg_locked(result, result ? NULL : *address, bytes, false);
}

VG_EXPORT CUresult cuMemAllocHost(void **address, unsigned int bytes)
{
    VG_ENTER();
    if (!vg_host_reserve(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocHost)(address, bytes);
    return vg_locked(result, result ? NULL : *address, bytes, false);
}

VG_EXPORT CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    VG_ENTER();
    if (!vg_host_reserve(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemHostAlloc)(address, bytes, flags);
    return vg_locked(result, result ? NULL : *address, bytes, false);
}

VG_EXPORT CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags)
{
    VG_ENTER();
    if (!vg_host_reserve(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return vg_locked(REAL(cuMemHostRegister_v2)(address, bytes, flags), address, bytes, true);
}

VG_EXPORT CUresult cuMemHostRegister(void *address, size_t bytes, unsigned int flags)
{
    VG_ENTER();
    if (!vg_host_reserve(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return vg_locked(REAL(cuMemHostRegister)(address, bytes, flags), address, bytes, true);
}

static CUresult vg_unlocked(CUresult (*end)(void *), void *address, enum vg_kind kind)
{
    struct vg_record record;
    bool ours = vg_book_take(kind, (uint64_t)address, &record);
    CUresult result = end(address);
    if (ours && result == CUDA_SUCCESS)
        vg_host_release(record.bytes);
    else if (ours)
        vg_book_put(&record);
    return result;
}

VG_EXPORT CUresult cuMemFreeHost(void *address)
{
    VG_ENTER();
    return vg_unlocked(REAL(cuMemFreeHost), address, VG_KIND_HOST);
}

VG_EXPORT CUresult cuMemHostUnregister(void *address)
{
    VG_ENTER();
    return vg_unlocked(REAL(cuMemHostUnregister), address, VG_KIND_REGISTERED);
}

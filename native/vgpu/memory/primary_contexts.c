/* Primary contexts, one for each GPU, shared by all who retain them: charged while there is one.
 *
 * Some libraries retain and release one around each of their calls. While others of the process hold
 * it, what is timed in it goes on, and nobody waits for it. */
#include "compute/compute.h"
#include "memory/memory.h"

/* How often this process retained each and did not release it. */
static _Atomic int32_t retained[VG_DEVICES];

/* Before one is released: whether it may end by that. */
static bool is_last(int row)
{
    int32_t before = atomic_load(&retained[row]);
    while (before > 0 && !atomic_compare_exchange_weak(&retained[row], &before, before - 1)) {
    }
    return before <= 1;
}

void vg_primaries_forked(void)
{
    for (int row = 0; row < VG_DEVICES; row++)
        atomic_store(&retained[row], 0);
}

bool vg_primary_active(CUdevice device)
{
    unsigned int flags;
    int active = 0;
    return REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && active;
}

void vg_primary_note(int row, CUdevice device, CUcontext context, uint64_t bytes)
{
    vg_record_put(&(struct vg_record){.kind = VG_KIND_PRIMARY,
                                      .key = (uint64_t)device,
                                      .row = (int8_t)row,
                                      .bytes = bytes,
                                      .other = (uint64_t)context});
    vg_contexts_open(row, 1);
}

void vg_primary_check(CUdevice device)
{
    struct vg_record record;
    if (!vg_primary_active(device) && vg_record_take(VG_KIND_PRIMARY, (uint64_t)device, &record))
        vg_context_gone(&record);
}

VG_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    VG_ENTER();
    int row = vg_row(device);
    struct vg_record record;
    struct vg_charge charge;
    if (row < 0)
        return REAL(cuDevicePrimaryCtxRetain)(context, device);
    bool there = vg_record_get(VG_KIND_PRIMARY, (uint64_t)device, &record);
    if (!vg_charge_begin(&charge, row, 0, there ? 0 : vg_context_bytes(row), VG_CALL_OTHER))
        return CUDA_ERROR_OUT_OF_MEMORY;
    vg_contexts_begin();
    there = vg_record_get(VG_KIND_PRIMARY, (uint64_t)device, &record);
    CUresult result = REAL(cuDevicePrimaryCtxRetain)(context, device);
    bool made = result == CUDA_SUCCESS && !there;
    if (result == CUDA_SUCCESS)
        atomic_fetch_add(&retained[row], 1);
    if (made) /* at its price even where it ended while we looked: then a little late */
        vg_primary_note(row, device, *context,
                        charge.reserved ? charge.reserved : vg_context_bytes(row));
    vg_charge_end(&charge, made ? charge.reserved ? charge.reserved : vg_context_bytes(row) : 0);
    vg_contexts_end();
    return result;
}

static CUresult end_primary(CUresult (*end)(CUdevice), CUdevice device, bool is_reset)
{
    struct vg_record record;
    struct vg_ending work = {.row = -1};
    int row = vg_row(device);
    bool may_end = row >= 0 && (is_last(row) || is_reset);
    bool ours = may_end && vg_record_get(VG_KIND_PRIMARY, (uint64_t)device, &record);
    if (ours) {
        vg_work_ending(&work, (CUcontext)record.other);
        vg_leave(record.row, record.bytes);
    }
    vg_contexts_begin();
    CUresult result = end(device);
    vg_context_changed();
    if (result == CUDA_SUCCESS)
        vg_primary_check(device);
    if (result == CUDA_SUCCESS && is_reset && row >= 0)
        atomic_store(&retained[row], 0);
    vg_contexts_end();
    vg_work_ended(&work);
    if (ours)
        vg_left(record.row, record.bytes, 0);
    return result;
}

VG_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    VG_ENTER();
    return end_primary(REAL(cuDevicePrimaryCtxRelease_v2), device, false);
}

VG_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    VG_ENTER();
    return end_primary(REAL(cuDevicePrimaryCtxRelease), device, false);
}

VG_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    VG_ENTER();
    return end_primary(REAL(cuDevicePrimaryCtxReset_v2), device, true);
}

VG_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    VG_ENTER();
    return end_primary(REAL(cuDevicePrimaryCtxReset), device, true);
}

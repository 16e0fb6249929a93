/* Primary contexts, one for each GPU, shared by all who retain them: charged while there is one.
 *
 * A lock of each GPU is held across the calls that make and end its primary context, or two threads
 * would not know which of them did. The driver, too, lets only one at a time do that.
 *
 * Some libraries retain and release one around each of their calls. While others of the process hold
 * it, what is timed in it goes on, and nobody waits for it. */
#include <pthread.h>

#include "memory/memory.h"

static pthread_mutex_t locks[VG_DEVICES] = {[0 ... VG_DEVICES - 1] = PTHREAD_MUTEX_INITIALIZER};
/* How often this process retained each and did not release it. */
static int32_t retained[VG_DEVICES];

void vg_primary_begin(int row)
{
    if (row >= 0)
        pthread_mutex_lock(&locks[row]);
}

void vg_primary_end(int row)
{
    if (row >= 0)
        pthread_mutex_unlock(&locks[row]);
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

bool vg_primary_ending(struct vg_context_end *end, int row, CUdevice device)
{
    struct vg_record record;
    if (retained[row] > 0 || !vg_record_get(VG_KIND_PRIMARY, (uint64_t)device, &record))
        return false;
    vg_context_ending(end, &record);
    return true;
}

void vg_primary_ended(struct vg_context_end *end, CUdevice device)
{
    struct vg_context_end late;
    struct vg_record record;
    bool is_gone = !vg_primary_active(device);
    if (!end && is_gone && vg_record_get(VG_KIND_PRIMARY, (uint64_t)device, &record))
        vg_context_ending(end = &late, &record); /* somebody released it behind our back */
    if (end && is_gone)
        vg_record_take(VG_KIND_PRIMARY, (uint64_t)device, &record);
    if (end)
        vg_context_ended(end, is_gone);
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
    vg_primary_begin(row); /* after the reservation, which may wait for others */
    there = vg_record_get(VG_KIND_PRIMARY, (uint64_t)device, &record);
    CUresult result = REAL(cuDevicePrimaryCtxRetain)(context, device);
    bool made = result == CUDA_SUCCESS && !there;
    retained[row] += result == CUDA_SUCCESS;
    if (made) /* at its price even where it ended while we looked: then a little late */
        vg_primary_note(row, device, *context,
                        charge.reserved ? charge.reserved : vg_context_bytes(row));
    vg_charge_end(&charge, made ? charge.reserved ? charge.reserved : vg_context_bytes(row) : 0);
    vg_primary_end(row);
    return result;
}

static CUresult end_primary(CUresult (*end)(CUdevice), CUdevice device, bool is_reset)
{
    struct vg_context_end all;
    int row = vg_row(device);
    if (row < 0) {
        CUresult result = end(device);
        vg_context_changed();
        return result;
    }
    vg_primary_begin(row);
    int32_t before = retained[row];
    retained[row] = is_reset || !before ? 0 : before - 1;
    bool may_end = vg_primary_ending(&all, row, device);
    CUresult result = end(device);
    vg_context_changed();
    if (result != CUDA_SUCCESS)
        retained[row] = before;
    if (may_end || result == CUDA_SUCCESS)
        vg_primary_ended(may_end ? &all : NULL, device);
    vg_primary_end(row);
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

void vg_primaries_forked(void)
{
    for (int row = 0; row < VG_DEVICES; row++) {
        pthread_mutex_init(&locks[row], NULL);
        retained[row] = 0;
    }
}

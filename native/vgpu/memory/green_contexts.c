/* Green contexts, a GPU's SMs in parts: they keep the primary context alive, and cost little beside
 * it. */
#include "memory/memory.h"

#define GREEN_BYTES VG_BLOCK /* beside its SMs, a green context has little of its own */

VG_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc resources, CUdevice device,
                                    unsigned int flags)
{
    VG_ENTER();
    int row = vg_row(device);
    struct vg_record record;
    struct vg_charge charge;
    vg_primary_begin(row); /* over the reservation, too: what it costs must not change */
    bool there = row < 0 || vg_record_get(VG_KIND_PRIMARY, (uint64_t)device, &record);
    uint64_t primary = there ? 0 : vg_context_bytes(row);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (vg_charge_begin(&charge, row, 0, primary + GREEN_BYTES, VG_CALL_OTHER)) {
        uint64_t actual = 0;
        result = REAL(cuGreenCtxCreate)(green, resources, device, flags);
        if (result == CUDA_SUCCESS && row >= 0) {
            CUcontext context;
            actual = GREEN_BYTES;
            vg_record_put(&(struct vg_record){.kind = VG_KIND_GREEN,
                                              .key = (uint64_t)*green,
                                              .row = (int8_t)row,
                                              .bytes = GREEN_BYTES,
                                              .other = (uint64_t)device});
            if (!there && vg_primary_active(device) &&
                REAL(cuDevicePrimaryCtxRetain)(&context, device) == CUDA_SUCCESS) {
                REAL(cuDevicePrimaryCtxRelease_v2)(device);
                vg_primary_note(row, device, context, primary);
                actual += primary;
            }
        }
        vg_charge_end(&charge, actual);
    }
    vg_primary_end(row);
    return result;
}

struct estate { void *context, *heir; };

static bool of_estate(const struct vg_record *record, const void *argument)
{
    return record->context == ((const struct estate *)argument)->context;
}

/* What was allocated while it was current stays, with the primary context. */
static void inherited(const struct vg_record *record, void *argument)
{
    struct vg_record kept = *record;
    kept.context = ((struct estate *)argument)->heir;
    vg_record_put(&kept);
}

VG_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    VG_ENTER();
    struct vg_record record, primary = {0};
    struct vg_context_end end;
    struct vg_ending work;
    CUcontext context = NULL;
    if (!vg_record_take(VG_KIND_GREEN, (uint64_t)green, &record))
        return REAL(cuGreenCtxDestroy)(green);
    CUdevice device = (CUdevice)record.other;
    REAL(cuCtxFromGreenCtx)(&context, green);
    vg_work_ending(&work, context);
    vg_primary_begin(record.row);
    vg_record_get(VG_KIND_PRIMARY, record.other, &primary);
    if (context) /* before the call: its handle may come again at once */
        vg_record_sweep(of_estate, &(struct estate){context, (void *)primary.other}, inherited);
    bool may_end = vg_primary_ending(&end, record.row, device);
    CUresult result = REAL(cuGreenCtxDestroy)(green);
    vg_context_changed();
    if (result == CUDA_SUCCESS)
        vg_release(record.row, record.bytes);
    else
        vg_record_put(&record);
    if (may_end || result == CUDA_SUCCESS)
        vg_primary_ended(may_end ? &end : NULL, device);
    vg_primary_end(record.row);
    vg_work_ended(&work);
    return result;
}

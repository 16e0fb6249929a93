/* What contexts cost: a fixed sum each (the server measured it), and what their limits add.
 *
 * A context's end frees what was allocated in it, too, so its records go with it. They are taken out
 * before the driver is called, as its handle may be given out again at once. No lock is held across
 * the calls that make and end contexts, which may take seconds: other threads make and end theirs.
 *
 * cuCheckpointProcess* is not hooked: a process that was checkpointed stays charged, so that there
 * is room for it when it is restored. */
#include "memory/memory.h"
#include "pools/pools.h"
#include "virtual_memory/virtual_memory.h"

uint64_t vg_context_bytes(int row)
{
    uint64_t bytes =
        row >= 0 ? __atomic_load_n(&vg_limits->device[row].context_bytes, __ATOMIC_RELAXED) : 0;
    return bytes ? bytes : VG_CONTEXT_DEFAULT;
}

void vg_contexts_open(int row, int change)
{
    struct vg_slot *mine = vg_slot();
    if (mine && row >= 0)
        atomic_fetch_add(&mine->device[row].contexts, (uint64_t)(int64_t)change);
}

static void *context_of(const struct vg_record *record)
{
    return record->kind == VG_KIND_PRIMARY ? (void *)record->other : (void *)record->key;
}

static bool of_context(const struct vg_record *record, const void *end)
{
    return record->context == context_of(&((const struct vg_context_end *)end)->record);
}

static void gone_with_context(const struct vg_record *record, void *unused)
{
    (void)unused;
    if (record->kind == VG_KIND_BINDING)
        vg_physical_drop(record->other, record->serial);
    else if (record->kind == VG_KIND_SWAPPED)
        vg_swap_freed(record);
    else if (record->kind == VG_KIND_DIRECT)
        vg_release(record->row, vg_blocks_leave(record->key, record->bytes));
    else if (record->row >= 0)
        vg_release(record->row, record->bytes);
    else
        vg_host_release(record->bytes);
}

static void put_back(const struct vg_record *record, void *unused)
{
    (void)unused;
    vg_record_put(record);
}

void vg_context_ending(struct vg_context_end *end, const struct vg_record *record)
{
    *end = (struct vg_context_end){.record = *record};
    vg_work_ending(&end->work, context_of(record));
    vg_leave(record->row, record->bytes);
    vg_record_sweep(of_context, end, vg_taken_add);
    end->frees = vg_pending_frees_take(context_of(record));
}

void vg_context_ended(struct vg_context_end *end, bool is_gone)
{
    vg_taken_each(&end->taken, is_gone ? gone_with_context : put_back, NULL);
    vg_taken_forget(&end->taken);
    if (is_gone) {
        vg_pending_frees_gone(end->frees, context_of(&end->record));
        vg_contexts_open(end->record.row, -1);
    } else {
        vg_pending_frees_put_back(end->frees);
    }
    vg_left(end->record.row, end->record.bytes, is_gone ? end->record.bytes : 0);
    vg_work_ended(&end->work);
}

static bool creating(struct vg_charge *charge, CUdevice device)
{
    int row = vg_row(device);
    return vg_charge_begin(charge, row, 0, row >= 0 ? vg_context_bytes(row) : 0, VG_CALL_OTHER);
}

static CUresult created(struct vg_charge *charge, CUresult result, const CUcontext *context)
{
    vg_context_changed();
    if (charge->row >= 0 && result == CUDA_SUCCESS) {
        vg_record_put(&(struct vg_record){.kind = VG_KIND_CONTEXT,
                                          .key = (uint64_t)*context,
                                          .row = (int8_t)charge->row,
                                          .bytes = charge->reserved});
        vg_contexts_open(charge->row, 1);
    }
    vg_charge_end(charge, result == CUDA_SUCCESS ? charge->reserved : 0);
    return result;
}

VG_EXPORT CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!creating(&charge, device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return created(&charge, REAL(cuCtxCreate)(context, flags, device), context);
}

VG_EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!creating(&charge, device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return created(&charge, REAL(cuCtxCreate_v2)(context, flags, device), context);
}

VG_EXPORT CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int n,
                                  unsigned int flags, CUdevice device)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!creating(&charge, device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return created(&charge, REAL(cuCtxCreate_v3)(context, affinity, n, flags, device), context);
}

VG_EXPORT CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters,
                                  unsigned int flags, CUdevice device)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!creating(&charge, device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return created(&charge, REAL(cuCtxCreate_v4)(context, parameters, flags, device), context);
}

static CUresult destroy_context(CUresult (*destroy)(CUcontext), CUcontext context)
{
    struct vg_record record;
    struct vg_context_end end;
    bool ours = vg_record_take(VG_KIND_CONTEXT, (uint64_t)context, &record);
    if (ours)
        vg_context_ending(&end, &record);
    CUresult result = destroy(context);
    vg_context_changed();
    if (ours && result != CUDA_SUCCESS)
        vg_record_put(&record);
    if (ours)
        vg_context_ended(&end, result == CUDA_SUCCESS);
    return result;
}

VG_EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
    VG_ENTER();
    return destroy_context(REAL(cuCtxDestroy_v2), context);
}

VG_EXPORT CUresult cuCtxDestroy(CUcontext context)
{
    VG_ENTER();
    return destroy_context(REAL(cuCtxDestroy), context);
}

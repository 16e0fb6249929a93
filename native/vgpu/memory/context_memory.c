/* What contexts cost: a fixed sum each (the server measured it), and what their limits add.
 *
 * A context's end frees what was allocated in it, too, so its records go with it. One lock of this
 * process is held across the calls that make and end contexts, which may wait for the GPU: a handle
 * that ends may be given out again at once, and its old records must be gone by then. Only threads
 * that make or end contexts ever wait for it.
 *
 * cuCheckpointProcess* is not hooked: a process that was checkpointed stays charged, so that there
 * is room for it when it is restored. */
#include <pthread.h>

#include "compute/compute.h"
#include "memory/memory.h"
#include "pools/pools.h"
#include "virtual_memory/virtual_memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void vg_contexts_begin(void)
{
    pthread_mutex_lock(&lock);
}

void vg_contexts_end(void)
{
    pthread_mutex_unlock(&lock);
}

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

static bool of_context(const struct vg_record *record, const void *context)
{
    return record->context == context;
}

static void gone_with_context(const struct vg_record *record, void *unused)
{
    (void)unused;
    if (record->kind == VG_KIND_BINDING)
        vg_physical_drop(record->other, record->serial);
    else if (record->kind == VG_KIND_DIRECT)
        vg_release(record->row, vg_blocks_leave(record->key, record->bytes));
    else if (record->row >= 0)
        vg_release(record->row, record->bytes);
    else
        vg_host_release(record->bytes);
}

void vg_context_gone(const struct vg_record *record)
{
    void *context = record->kind == VG_KIND_PRIMARY ? (void *)record->other : (void *)record->key;
    vg_record_sweep(of_context, context, gone_with_context);
    vg_pending_frees_context_gone(context);
    vg_release(record->row, record->bytes);
    vg_contexts_open(record->row, -1);
}

static bool creating(struct vg_charge *charge, CUdevice device)
{
    int row = vg_row(device);
    if (!vg_charge_begin(charge, row, 0, row >= 0 ? vg_context_bytes(row) : 0, VG_CALL_OTHER))
        return false;
    vg_contexts_begin(); /* after the reservation, which may wait for others */
    return true;
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
    vg_contexts_end();
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
    struct vg_record record, doomed;
    bool ours = vg_record_get(VG_KIND_CONTEXT, (uint64_t)context, &doomed);
    if (ours)
        vg_leave(doomed.row, doomed.bytes);
    struct vg_ending work;
    vg_work_ending(&work, context);
    vg_contexts_begin();
    CUresult result = destroy(context);
    vg_context_changed();
    if (result == CUDA_SUCCESS && vg_record_take(VG_KIND_CONTEXT, (uint64_t)context, &record))
        vg_context_gone(&record);
    vg_contexts_end();
    vg_work_ended(&work);
    if (ours)
        vg_left(doomed.row, doomed.bytes, 0);
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

void vg_contexts_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    vg_primaries_forked();
}

/* What contexts cost: a fixed sum each (the server measured it), and what their limits add.
 *
 * A context's end frees what was allocated in it, too, so its records go with it. One lock of this
 * process is held while contexts are made and ended: a handle that ends may be given out again at
 * once, and its old records must be gone by then. Nobody else ever waits for it.
 *
 * cuCheckpointProcess* is not hooked: a process that was checkpointed stays charged, so that there is
 * room for it when it is restored. */
#include <pthread.h>

#include "ledger/memory.h"

#define VG_GREEN_BYTES VG_BLOCK /* beside its SMs, a green context has little of its own */

static pthread_mutex_t vg_contexts_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t vg_context_bytes(int row)
{
    uint64_t bytes = row >= 0 ? __atomic_load_n(&vg_limits->device[row].context_bytes, __ATOMIC_RELAXED) : 0;
    return bytes ? bytes : VG_CONTEXT_DEFAULT;
}

static void vg_contexts_open(int row, int change)
{
    struct vg_slot *mine = vg_slot();
    if (mine && row >= 0)
        atomic_fetch_add(&mine->device[row].contexts, (uint64_t)(int64_t)change);
}

static bool vg_of_context(const struct vg_record *record, const void *context)
{
    return record->context == context;
}

static void vg_gone_with_context(const struct vg_record *record, void *unused)
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

/* After the driver ended the context that this record is of. */
static void vg_context_gone(const struct vg_record *record)
{
    void *context = record->kind == VG_KIND_PRIMARY ? (void *)record->other : (void *)record->key;
    vg_book_sweep(vg_of_context, context, vg_gone_with_context);
    vg_later_context_gone(context);
    vg_release(record->row, record->bytes);
    vg_contexts_open(record->row, -1);
}

/* ---- contexts that the program makes ----------------------------------------------------------- */

static bool vg_creating(struct vg_charge *charge, CUdevice device)
{
    int row = vg_row(device);
    if (!vg_charge_begin(charge, row, 0, row >= 0 ? vg_context_bytes(row) : 0, VG_CALL_OTHER))
        return false;
    pthread_mutex_lock(&vg_contexts_lock); /* after the reservation, which may wait for others */
    return true;
}

static CUresult vg_created(struct vg_charge *charge, CUresult result, const CUcontext *context)
{
    vg_context_changed();
    if (charge->row >= 0 && result == CUDA_SUCCESS) {
        vg_book_put(&(struct vg_record){.kind = VG_KIND_CONTEXT, .key = (uint64_t)*context, .row = (int8_t)charge->row,
                                        .bytes = charge->reserved});
        vg_contexts_open(charge->row, 1);
    }
    vg_charge_end(charge, result == CUDA_SUCCESS ? charge->reserved : 0);
    pthread_mutex_unlock(&vg_contexts_lock);
    return result;
}

VG_EXPORT CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_creating(&charge, device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return vg_created(&charge, REAL(cuCtxCreate)(context, flags, device), context);
}

VG_EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_creating(&charge, device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return vg_created(&charge, REAL(cuCtxCreate_v2)(context, flags, device), context);
}

VG_EXPORT CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int n, unsigned int flags,
                                  CUdevice device)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_creating(&charge, device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return vg_created(&charge, REAL(cuCtxCreate_v3)(context, affinity, n, flags, device), context);
}

VG_EXPORT CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags, CUdevice device)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!vg_creating(&charge, device))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return vg_created(&charge, REAL(cuCtxCreate_v4)(context, parameters, flags, device), context);
}

static CUresult vg_destroy(CUresult (*destroy)(CUcontext), CUcontext context)
{
    struct vg_record record, doomed;
    bool ours = vg_book_get(VG_KIND_CONTEXT, (uint64_t)context, &doomed);
    if (ours)
        vg_leave(doomed.row, doomed.bytes);
    vg_work_forgotten(context);
    pthread_mutex_lock(&vg_contexts_lock);
    CUresult result = destroy(context);
    vg_context_changed();
    if (result == CUDA_SUCCESS && vg_book_take(VG_KIND_CONTEXT, (uint64_t)context, &record))
        vg_context_gone(&record);
    pthread_mutex_unlock(&vg_contexts_lock);
    if (ours)
        vg_left(doomed.row, doomed.bytes, 0);
    return result;
}

VG_EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
    VG_ENTER();
    return vg_destroy(REAL(cuCtxDestroy_v2), context);
}

VG_EXPORT CUresult cuCtxDestroy(CUcontext context)
{
    VG_ENTER();
    return vg_destroy(REAL(cuCtxDestroy), context);
}

/* ---- primary contexts, shared by all who retain them ---------------------------------------------- */

static bool vg_primary_active(CUdevice device)
{
    unsigned int flags;
    int active = 0;
    return REAL(cuDevicePrimaryCtxGetState)(device, &flags, &active) == CUDA_SUCCESS && active;
}

static void vg_primary_note(int row, CUdevice device, CUcontext context, uint64_t bytes)
{
    vg_book_put(&(struct vg_record){.kind = VG_KIND_PRIMARY, .key = (uint64_t)device, .row = (int8_t)row, .bytes = bytes,
                                    .other = (uint64_t)context});
    vg_contexts_open(row, 1);
}

/* After a call that may have ended it: whether it did, the driver knows best. */
static void vg_primary_check(CUdevice device)
{
    struct vg_record record;
    if (!vg_primary_active(device) && vg_book_take(VG_KIND_PRIMARY, (uint64_t)device, &record))
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
    bool there = vg_book_get(VG_KIND_PRIMARY, (uint64_t)device, &record);
    if (!vg_charge_begin(&charge, row, 0, there ? 0 : vg_context_bytes(row), VG_CALL_OTHER))
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&vg_contexts_lock);
    there = vg_book_get(VG_KIND_PRIMARY, (uint64_t)device, &record);
    CUresult result = REAL(cuDevicePrimaryCtxRetain)(context, device);
    bool made = result == CUDA_SUCCESS && !there;
    if (made) /* at its price even where it ended while we looked: then a little late */
        vg_primary_note(row, device, *context, charge.reserved ? charge.reserved : vg_context_bytes(row));
    vg_charge_end(&charge, made ? charge.reserved ? charge.reserved : vg_context_bytes(row) : 0);
    pthread_mutex_unlock(&vg_contexts_lock);
    return result;
}

static CUresult vg_primary_end(CUresult (*end)(CUdevice), CUdevice device)
{
    struct vg_record record;
    bool ours = vg_book_get(VG_KIND_PRIMARY, (uint64_t)device, &record);
    if (ours) {
        vg_work_forgotten((CUcontext)record.other);
        vg_leave(record.row, record.bytes);
    }
    pthread_mutex_lock(&vg_contexts_lock);
    CUresult result = end(device);
    vg_context_changed();
    if (result == CUDA_SUCCESS)
        vg_primary_check(device);
    pthread_mutex_unlock(&vg_contexts_lock);
    if (ours)
        vg_left(record.row, record.bytes, 0);
    return result;
}

VG_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    VG_ENTER();
    return vg_primary_end(REAL(cuDevicePrimaryCtxRelease_v2), device);
}

VG_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    VG_ENTER();
    return vg_primary_end(REAL(cuDevicePrimaryCtxRelease), device);
}

VG_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    VG_ENTER();
    return vg_primary_end(REAL(cuDevicePrimaryCtxReset_v2), device);
}

VG_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    VG_ENTER();
    return vg_primary_end(REAL(cuDevicePrimaryCtxReset), device);
}

/* ---- green contexts, which keep the primary context alive -------------------------------------------- */

VG_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc resources, CUdevice device, unsigned int flags)
{
    VG_ENTER();
    int row = vg_row(device);
    struct vg_record record;
    struct vg_charge charge;
    pthread_mutex_lock(&vg_contexts_lock);
    bool there = row < 0 || vg_book_get(VG_KIND_PRIMARY, (uint64_t)device, &record);
    uint64_t primary = there ? 0 : vg_context_bytes(row);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (vg_charge_begin(&charge, row, 0, primary + VG_GREEN_BYTES, VG_CALL_OTHER)) {
        uint64_t actual = 0;
        result = REAL(cuGreenCtxCreate)(green, resources, device, flags);
        if (result == CUDA_SUCCESS && row >= 0) {
            CUcontext context;
            actual = VG_GREEN_BYTES;
            vg_book_put(&(struct vg_record){.kind = VG_KIND_GREEN, .key = (uint64_t)*green, .row = (int8_t)row,
                                            .bytes = VG_GREEN_BYTES, .other = (uint64_t)device});
            if (!there && vg_primary_active(device) && REAL(cuDevicePrimaryCtxRetain)(&context, device) == CUDA_SUCCESS) {
                REAL(cuDevicePrimaryCtxRelease_v2)(device);
                vg_primary_note(row, device, context, primary);
                actual += primary;
            }
        }
        vg_charge_end(&charge, actual);
    }
    pthread_mutex_unlock(&vg_contexts_lock);
    return result;
}

struct vg_estate { void *context, *heir; };

static bool vg_of_estate(const struct vg_record *record, const void *argument)
{
    return vg_of_context(record, ((const struct vg_estate *)argument)->context);
}

/* What was allocated while it was current stays, with the primary context. */
static void vg_inherited(const struct vg_record *record, void *argument)
{
    struct vg_record kept = *record;
    kept.context = ((struct vg_estate *)argument)->heir;
    vg_book_put(&kept);
}

VG_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    VG_ENTER();
    struct vg_record record, primary = {0};
    CUcontext context = NULL;
    pthread_mutex_lock(&vg_contexts_lock);
    if (REAL(cuCtxFromGreenCtx)(&context, green) == CUDA_SUCCESS)
        vg_work_forgotten(context);
    CUresult result = REAL(cuGreenCtxDestroy)(green);
    vg_context_changed();
    if (result == CUDA_SUCCESS && vg_book_take(VG_KIND_GREEN, (uint64_t)green, &record)) {
        vg_release(record.row, record.bytes);
        vg_book_get(VG_KIND_PRIMARY, record.other, &primary);
        vg_book_sweep(vg_of_estate, &(struct vg_estate){context, (void *)primary.other}, vg_inherited);
        vg_primary_check((CUdevice)record.other);
    }
    pthread_mutex_unlock(&vg_contexts_lock);
    return result;
}

/* ---- stacks, heap and printf buffer ------------------------------------------------------------------ */

/* The driver keeps a stack for every thread that can be resident; up to these sizes a context's own
 * cost covers them. */
static const uint64_t vg_limit_free[3] = {
    [CU_LIMIT_STACK_SIZE] = 1024, [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20, [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20};

static uint64_t vg_limit_bytes(CUlimit which, uint64_t value, CUdevice device)
{
    int sms = 0, threads = 0;
    uint64_t over = value > vg_limit_free[which] ? value - vg_limit_free[which] : 0;
    if (which == CU_LIMIT_STACK_SIZE) {
        REAL(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
        REAL(cuDeviceGetAttribute)(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
        if (__builtin_mul_overflow(over, (uint64_t)sms * (uint64_t)threads, &over))
            over = UINT64_MAX;
    }
    return vg_rounded(over);
}

VG_EXPORT CUresult cuCtxSetLimit(CUlimit which, size_t value)
{
    VG_ENTER();
    int row = vg_current_row();
    size_t old = 0, new = 0;
    struct vg_charge charge;
    if (row < 0 || (unsigned)which > CU_LIMIT_MALLOC_HEAP_SIZE || REAL(cuCtxGetLimit)(&old, which) != CUDA_SUCCESS)
        return REAL(cuCtxSetLimit)(which, value);
    CUdevice device = vg_row_device(row);
    uint64_t before = vg_limit_bytes(which, old, device), after = vg_limit_bytes(which, value, device);
    pthread_mutex_lock(&vg_contexts_lock);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (vg_charge_begin(&charge, row, 0, after > before ? after - before : 0, VG_CALL_OTHER)) {
        result = REAL(cuCtxSetLimit)(which, value);
        REAL(cuCtxGetLimit)(&new, which); /* the driver may have taken another value */
        after = vg_limit_bytes(which, new, device);
        struct vg_record record;
        void *context = vg_context();
        bool primary = vg_book_get(VG_KIND_PRIMARY, (uint64_t)device, &record) && record.other == (uint64_t)context;
        if (primary || vg_book_get(VG_KIND_CONTEXT, (uint64_t)context, &record)) {
            record.bytes += after - before;
            vg_book_put(&record);
        }
        vg_charge_end(&charge, after > before ? after - before : 0);
        if (after < before)
            vg_release(row, before - after);
    }
    pthread_mutex_unlock(&vg_contexts_lock);
    return result;
}

void vg_contexts_forked(void)
{
    pthread_mutex_init(&vg_contexts_lock, NULL);
}

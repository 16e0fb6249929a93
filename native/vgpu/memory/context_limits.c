/* What a context's limits add to its cost (cuCtxSetLimit): stacks, heap and printf buffer. */
#include <pthread.h>

#include "memory/memory.h"

/* Of two threads that change a limit of one context, the second must see what the first made of it,
 * so a lock is held across the call. Contexts have locks of their own, but for a few that share one. */
#define LOCKS 16u /* four bits of a hash */
static pthread_mutex_t locks[LOCKS] = {[0 ... LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};

static pthread_mutex_t *lock_of(const void *context)
{
    return &locks[(uintptr_t)context * 0x9E3779B97F4A7C15ull >> 60];
}

/* The driver keeps a stack for every thread that can be resident; up to these sizes a context's own
 * cost covers them. */
static const uint64_t covered[3] = {[CU_LIMIT_STACK_SIZE] = 1024,
                                    [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
                                    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20};

static uint64_t limit_bytes(CUlimit which, uint64_t value, CUdevice device)
{
    int sms = 0, threads = 0;
    uint64_t over = value > covered[which] ? value - covered[which] : 0;
    if (which == CU_LIMIT_STACK_SIZE) {
        REAL(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
        REAL(cuDeviceGetAttribute)(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                   device);
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
    if (row < 0 || (unsigned)which > CU_LIMIT_MALLOC_HEAP_SIZE)
        return REAL(cuCtxSetLimit)(which, value);
    pthread_mutex_t *lock = lock_of(vg_context());
    pthread_mutex_lock(lock);
    if (REAL(cuCtxGetLimit)(&old, which) != CUDA_SUCCESS) {
        pthread_mutex_unlock(lock);
        return REAL(cuCtxSetLimit)(which, value);
    }
    CUdevice device = vg_row_device(row);
    uint64_t before = limit_bytes(which, old, device), after = limit_bytes(which, value, device);
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (vg_charge_begin(&charge, row, 0, after > before ? after - before : 0, VG_CALL_OTHER)) {
        result = REAL(cuCtxSetLimit)(which, value);
        REAL(cuCtxGetLimit)(&new, which); /* the driver may have taken another value */
        after = limit_bytes(which, new, device);
        struct vg_record record;
        void *context = vg_context();
        bool primary = vg_record_get(VG_KIND_PRIMARY, (uint64_t)device, &record) &&
                       record.other == (uint64_t)context;
        if (primary)
            vg_record_grow(VG_KIND_PRIMARY, (uint64_t)device, after - before);
        else
            vg_record_grow(VG_KIND_CONTEXT, (uint64_t)context, after - before);
        vg_charge_end(&charge, after > before ? after - before : 0);
        if (after < before)
            vg_release(row, before - after);
    }
    pthread_mutex_unlock(lock);
    return result;
}

void vg_context_limits_forked(void)
{
    for (unsigned int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&locks[i], NULL);
}

/* What the driver lets go when a stream comes to it: cuMemFreeAsync of memory that is not from a
 * pool, and physical memory that is unbound from an array.
 *
 * Until then the driver holds the memory, so it stays charged. An event behind the call tells when;
 * it is looked at whenever the stocks are (pools.h), and before anything is refused. */
#include <pthread.h>
#include <stdlib.h>

#include "compute/compute.h"
#include "pools/pools.h"
#include "virtual_memory/virtual_memory.h"

struct pending_free {
    struct pending_free *next;
    struct vg_record record;
    CUevent event;
    void *context; /* the event's */
};

/* Held across questions about events and their end, none of which waits for the GPU: else the end
 * of a context would not find those that another thread just looks at. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending_free *frees;
static _Atomic unsigned int n_frees;

static void freed(const struct vg_record *record)
{
    if (record->kind == VG_KIND_BINDING) {
        vg_physical_drop(record->other, record->serial);
        return;
    }
    vg_left(record->row, vg_rounded(record->bytes),
            record->kind == VG_KIND_DIRECT ? vg_blocks_leave(record->key, record->bytes)
                                           : record->bytes);
}

bool vg_pending_frees_settle(void)
{
    bool any = false;
    if (likely(!atomic_load_explicit(&n_frees, memory_order_relaxed)))
        return false;
    int kept;
    if (!vg_captures_aside(&kept))
        return false;
    pthread_mutex_lock(&lock);
    for (struct pending_free **at = &frees; *at;) {
        struct pending_free *one = *at;
        CUresult result = REAL(cuEventQuery)(one->event);
        if (result != CUDA_SUCCESS) { /* an error says nothing of the memory */
            at = &one->next;
            continue;
        }
        *at = one->next;
        atomic_fetch_sub(&n_frees, 1);
        REAL(cuEventDestroy_v2)(one->event);
        freed(&one->record);
        free(one);
        any = true;
    }
    pthread_mutex_unlock(&lock);
    vg_captures_back(kept);
    return any;
}

CUresult vg_free_in_stream(struct vg_record *record, CUstream stream, CUstream given,
                           CUresult (*call)(CUdeviceptr, CUstream))
{
    vg_leave(record->row, vg_rounded(record->bytes));
    CUresult result = call(record->key, given);
    if (result != CUDA_SUCCESS) {
        vg_left(record->row, vg_rounded(record->bytes), 0);
        vg_record_put(record);
        return result;
    }
    vg_pending_free(record, stream);
    return result;
}

void vg_pending_free(const struct vg_record *record, CUstream stream)
{
    struct pending_free *one = malloc(sizeof *one);
    bool made = one && REAL(cuEventCreate)(&one->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
    /* a stream of another context */
    if (!made || REAL(cuEventRecord)(one->event, stream) != CUDA_SUCCESS) {
        if (made)
            REAL(cuEventDestroy_v2)(one->event);
        free(one);
        REAL(cuStreamSynchronize)(stream); /* then it is freed now */
        freed(record);
        return;
    }
    one->record = *record;
    one->context = vg_context();
    pthread_mutex_lock(&lock);
    one->next = frees;
    frees = one;
    atomic_fetch_add(&n_frees, 1);
    pthread_mutex_unlock(&lock);
    vg_pending_frees_settle();
}

struct pending_free *vg_pending_frees_take(const void *context)
{
    struct pending_free *taken = NULL;
    pthread_mutex_lock(&lock);
    for (struct pending_free **at = &frees; *at;) {
        struct pending_free *one = *at;
        if (one->context != context && one->record.context != context) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        atomic_fetch_sub(&n_frees, 1);
        one->next = taken;
        taken = one;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

void vg_pending_frees_gone(struct pending_free *taken, const void *context)
{
    while (taken) {
        struct pending_free *one = taken;
        taken = one->next;
        if (one->context != context) /* else it went with its context */
            REAL(cuEventDestroy_v2)(one->event);
        freed(&one->record);
        free(one);
    }
}

void vg_pending_frees_put_back(struct pending_free *taken)
{
    pthread_mutex_lock(&lock);
    while (taken) {
        struct pending_free *one = taken;
        taken = one->next;
        one->next = frees;
        frees = one;
        atomic_fetch_add(&n_frees, 1);
    }
    pthread_mutex_unlock(&lock);
}

void vg_pending_frees_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    atomic_store(&n_frees, 0);
    while (frees) {
        struct pending_free *one = frees;
        frees = one->next;
        free(one);
    }
}

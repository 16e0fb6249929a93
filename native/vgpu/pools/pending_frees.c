/* What the driver lets go when a stream comes to it: cuMemFreeAsync of memory that is not from a
 * pool, and physical memory that is unbound from an array.
 *
 * Until then the driver holds the memory, so it stays charged. An event behind the call tells when;
 * it is looked at whenever the stocks are (pools.h), and before anything is refused. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "compute/compute.h"
#include "pools/pools.h"
#include "virtual_memory/virtual_memory.h"

struct pending_free {
    struct pending_free *next, **link;
    struct vg_record record;
    CUevent event;
    void *context; /* the event's */
    bool is_asked; /* a thread, without the lock, asks the driver about it: it stays meanwhile */
};

/* Not held across calls of the driver. Who must have an answer (the end of a context, a refusal)
 * waits until nobody asks any more. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pending_free *frees;
static unsigned int n_asked;
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

/* The lock is held, here and in the next two. */
static void put_in(struct pending_free *one)
{
    one->next = frees;
    one->link = &frees;
    if (frees)
        frees->link = &one->next;
    frees = one;
    atomic_fetch_add(&n_frees, 1);
}

static void take_out(struct pending_free *one)
{
    *one->link = one->next;
    if (one->next)
        one->next->link = one->link;
    atomic_fetch_sub(&n_frees, 1);
}

static void wait_for_others(void)
{
    pthread_mutex_unlock(&lock);
    sched_yield();
    pthread_mutex_lock(&lock);
}

/* Whether the stream has come to it; an error says nothing of the memory. */
static bool has_come(const struct pending_free *one)
{
    if (REAL(cuEventQuery)(one->event) != CUDA_SUCCESS)
        return false;
    REAL(cuEventDestroy_v2)(one->event);
    return true;
}

static bool settle(bool waits)
{
    bool any = false;
    if (likely(!atomic_load_explicit(&n_frees, memory_order_relaxed)))
        return false;
    int kept;
    if (!vg_captures_aside(&kept))
        return false;
    pthread_mutex_lock(&lock);
    for (struct pending_free *one = frees, *after; one; one = after) {
        after = one->next;
        if (one->is_asked)
            continue; /* by another thread, which credits it */
        one->is_asked = true;
        n_asked++;
        pthread_mutex_unlock(&lock);
        bool is_done = has_come(one);
        pthread_mutex_lock(&lock);
        one->is_asked = false;
        n_asked--;
        after = one->next; /* others may have gone meanwhile */
        if (!is_done)
            continue;
        take_out(one);
        freed(&one->record);
        free(one);
        any = true;
    }
    while (waits && n_asked)
        wait_for_others();
    pthread_mutex_unlock(&lock);
    vg_captures_back(kept);
    return any;
}

bool vg_pending_frees_settle(void)
{
    return settle(false);
}

bool vg_pending_frees_settle_all(void)
{
    return settle(true);
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
    one->is_asked = false;
    pthread_mutex_lock(&lock);
    put_in(one);
    pthread_mutex_unlock(&lock);
    vg_pending_frees_settle();
}

struct pending_free *vg_pending_frees_take(const void *context)
{
    struct pending_free *taken = NULL;
    pthread_mutex_lock(&lock);
    while (n_asked)
        wait_for_others();
    for (struct pending_free *one = frees, *after; one; one = after) {
        after = one->next;
        if (one->context != context && one->record.context != context)
            continue;
        take_out(one);
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
        put_in(one);
    }
    pthread_mutex_unlock(&lock);
}

void vg_pending_frees_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    atomic_store(&n_frees, 0);
    n_asked = 0;
    while (frees) {
        struct pending_free *one = frees;
        frees = one->next;
        free(one);
    }
}

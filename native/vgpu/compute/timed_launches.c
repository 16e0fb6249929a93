/* Timing launches on the GPU: a pair of our own events around some of them.
 *
 * The events go into the application's stream, so the time between them is the kernel's and that of
 * what ran meanwhile. They are created in the context that is current, kept for the next sample of
 * that context, and asked lazily: nothing here ever waits for the GPU. A slot is owned by whoever
 * moved it to BUSY, so no lock is held across a driver call.
 *
 * The samples also tell how far the GPU has come: each remembers how much GPU time the process had
 * issued before it. */
#include "compute/compute.h"
#include "compute/price_constants.h"

#define SLOTS 128u
#define MISSES 3u  /* so many that are not complete end a look through the slots */
#define FURTHER 2u /* and so many behind them: the first may be of kernels that do not end */

enum state { FREE, BUSY, PENDING };

struct sample {
    _Atomic int state;
    int row;
    struct vg_cost *cost;
    CUcontext context;           /* whose events these are; NULL: none created */
    CUevent idle, before, after; /* idle: recorded right before `before`, where `is_calibrating` */
    bool is_calibrating, is_unknown;
    uint32_t stands_for;
    uint64_t charged;
    uint64_t issued; /* vg_issued_ns before it */
    uint64_t start;  /* when the GPU comes to it, about */
    struct vg_contention contention;
};

static struct sample slots[SLOTS];
static _Atomic uint32_t next, oldest; /* where to look first: the slots are used in turn */
static _Atomic uint32_t further;      /* where to look besides */
static _Atomic uint64_t completed[VG_DEVICES];
static _Atomic uint64_t empty_ns[VG_DEVICES]; /* what a pair of events around nothing shows */
_Atomic uint32_t vg_samples_pending, vg_samples_unknown;

/* Events may be destroyed from any context. */
static void forget_events(struct sample *sample)
{
    REAL(cuEventDestroy_v2)(sample->idle);
    REAL(cuEventDestroy_v2)(sample->before);
    REAL(cuEventDestroy_v2)(sample->after);
    sample->context = NULL;
}

static bool prepared(struct sample *sample, CUcontext context)
{
    if (sample->context == context)
        return true;
    if (sample->context)
        forget_events(sample);
    CUevent *events[] = {&sample->idle, &sample->before, &sample->after};
    for (int i = 0; i < 3; i++)
        if (REAL(cuEventCreate)(events[i], 0) != CUDA_SUCCESS) {
            while (i--)
                REAL(cuEventDestroy_v2)(*events[i]);
            return false;
        }
    sample->context = context;
    return true;
}

/* The next slot that is free, BUSY now; NULL: all are in use. */
static struct sample *free_slot(uint32_t *number)
{
    *number = atomic_load_explicit(&next, memory_order_relaxed);
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct sample *sample = &slots[(*number + i) % SLOTS];
        int state = FREE;
        if (atomic_load_explicit(&sample->state, memory_order_relaxed) != FREE)
            continue;
        if (!atomic_compare_exchange_strong(&next, number, *number + i + 1) ||
            !atomic_compare_exchange_strong(&sample->state, &state, BUSY))
            return NULL; /* another thread was faster */
        return sample;
    }
    return NULL;
}

static bool recorded(struct sample *sample, CUcontext context, CUstream stream)
{
    int kept;
    if (!vg_captures_aside(&kept))
        return false;
    bool done =
        prepared(sample, context) &&
        (!sample->is_calibrating || REAL(cuEventRecord)(sample->idle, stream) == CUDA_SUCCESS) &&
        REAL(cuEventRecord)(sample->before, stream) == CUDA_SUCCESS;
    vg_captures_back(kept);
    return done;
}

void *vg_sample_begin(int row, struct vg_cost *cost, uint64_t charged, uint64_t start,
                      CUstream stream)
{
    CUcontext context = NULL;
    uint32_t number;
    if (REAL(cuCtxGetCurrent)(&context) != CUDA_SUCCESS || !context)
        return NULL;
    if (atomic_load_explicit(&vg_samples_pending, memory_order_relaxed))
        vg_samples_drain();
    struct sample *sample = free_slot(&number);
    if (!sample)
        return NULL;
    sample->is_calibrating = number % CALIBRATED == 0;
    if (!recorded(sample, context, stream)) {
        atomic_store(&sample->state, FREE);
        return NULL;
    }
    sample->is_unknown = !atomic_load_explicit(&cost->predicted, memory_order_relaxed);
    if (sample->is_unknown)
        atomic_fetch_add_explicit(&vg_samples_unknown, 1, memory_order_relaxed);
    sample->row = row;
    sample->cost = cost;
    sample->charged = charged;
    sample->issued = atomic_load_explicit(&vg_issued_ns[row], memory_order_relaxed);
    uint64_t now = vg_now_ns();
    sample->start = start > now ? start : now;
    sample->contention = vg_contention(row, now);
    sample->contention.siblings = vg_siblings(row, now);
    sample->stands_for = atomic_load_explicit(&cost->interval, memory_order_relaxed);
    uint32_t interval =
        vg_cost_interval(atomic_load_explicit(&cost->predicted, memory_order_relaxed));
    if (vg_cost_samples(cost) < MANY && interval > DENSE)
        interval = DENSE;
    atomic_store_explicit(&cost->interval, interval, memory_order_relaxed);
    atomic_store_explicit(&cost->left, interval - 1, memory_order_relaxed);
    return sample;
}

static void let_go(struct sample *sample)
{
    if (sample->is_unknown)
        atomic_fetch_sub_explicit(&vg_samples_unknown, 1, memory_order_relaxed);
    atomic_store_explicit(&sample->state, FREE, memory_order_release);
}

void vg_sample_end(void *handle, CUresult result, CUstream stream)
{
    struct sample *sample = handle;
    int kept;
    bool done = result == CUDA_SUCCESS && vg_captures_aside(&kept);
    if (done) {
        done = REAL(cuEventRecord)(sample->after, stream) == CUDA_SUCCESS;
        vg_captures_back(kept);
    }
    if (!done) {
        let_go(sample);
        return;
    }
    atomic_fetch_add_explicit(&vg_samples_pending, 1, memory_order_relaxed);
    atomic_store_explicit(&sample->state, PENDING, memory_order_release);
}

static uint64_t between(CUevent before, CUevent after)
{
    float ms = 0;
    if (REAL(cuEventElapsedTime)(&ms, before, after) != CUDA_SUCCESS || !(ms > 0))
        return 0;
    return (uint64_t)((double)ms * 1e6);
}

static void calibrate(struct sample *sample)
{
    uint64_t seen = between(sample->idle, sample->before);
    uint64_t known = atomic_load_explicit(&empty_ns[sample->row], memory_order_relaxed);
    if (!seen || seen > MAX_EMPTY_NS) /* a slice of another in between */
        return;
    atomic_store_explicit(&empty_ns[sample->row], known ? (7 * known + seen) / 8 : seen,
                          memory_order_relaxed);
}

static void take(struct sample *sample)
{
    if (sample->is_calibrating)
        calibrate(sample);
    uint64_t empty = atomic_load_explicit(&empty_ns[sample->row], memory_order_relaxed);
    uint64_t elapsed = between(sample->before, sample->after);
    uint64_t now = vg_now_ns();
    struct vg_contention at_end = vg_contention(sample->row, now);
    if (at_end.neighbours > sample->contention.neighbours)
        sample->contention = at_end;
    sample->contention.is_quiet &= at_end.is_quiet;
    at_end.siblings = vg_siblings(sample->row, now);
    if (at_end.siblings > sample->contention.siblings)
        sample->contention.siblings = at_end.siblings;
    struct vg_timed timed = {sample->start,
                             elapsed > empty ? elapsed - empty : 1,
                             sample->charged,
                             sample->stands_for ? sample->stands_for : 1,
                             now,
                             sample->contention};
    if (elapsed)
        vg_owe(sample->row, vg_cost_measured(sample->cost, &timed));
    uint64_t far = atomic_load_explicit(&completed[sample->row], memory_order_relaxed);
    while (far < sample->issued &&
           !atomic_compare_exchange_weak_explicit(&completed[sample->row], &far, sample->issued,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* Takes what has completed in [from, to), until so many were found that have not. Where it came to,
 * and in `done` up to where all have. */
static uint32_t look(uint32_t from, uint32_t to, uint32_t most, uint32_t *done)
{
    uint32_t misses = 0, at;
    for (*done = from, at = from; at != to && misses < most; at++) {
        struct sample *sample = &slots[at % SLOTS];
        int state = PENDING;
        if (!atomic_compare_exchange_strong_explicit(&sample->state, &state, BUSY,
                                                     memory_order_acquire, memory_order_relaxed)) {
            if (state == BUSY)
                misses++;
        } else {
            CUresult result = REAL(cuEventQuery)(sample->after);
            if (result == CUDA_ERROR_NOT_READY) {
                atomic_store_explicit(&sample->state, PENDING, memory_order_release);
                misses++;
            } else {
                if (result == CUDA_SUCCESS)
                    take(sample);
                else
                    sample->context = NULL; /* its context is in error: leave the events to it */
                atomic_fetch_sub_explicit(&vg_samples_pending, 1, memory_order_relaxed);
                let_go(sample);
            }
        }
        if (!misses)
            *done = at + 1;
    }
    return at;
}

void vg_samples_drain(void)
{
    uint32_t seen = atomic_load_explicit(&oldest, memory_order_relaxed);
    uint32_t to = atomic_load_explicit(&next, memory_order_relaxed);
    uint32_t from = to - seen > SLOTS ? to - SLOTS : seen, done, ignored;
    int kept;
    if (from == to || !vg_captures_aside(&kept))
        return;
    uint32_t at = look(from, to, MISSES, &done);
    if (at != to) {
        uint32_t behind = atomic_load_explicit(&further, memory_order_relaxed);
        behind = look(behind - at < to - at ? behind : at, to, FURTHER, &ignored);
        atomic_store_explicit(&further, behind, memory_order_relaxed);
    }
    vg_captures_back(kept);
    atomic_compare_exchange_strong_explicit(&oldest, &seen, done, memory_order_relaxed,
                                            memory_order_relaxed);
}

uint64_t vg_backlog(int row)
{
    uint64_t far = atomic_load_explicit(&completed[row], memory_order_relaxed);
    uint64_t issued = atomic_load_explicit(&vg_issued_ns[row], memory_order_relaxed);
    return issued > far ? issued - far : 0;
}

void vg_backlog_forget(int row)
{
    atomic_store_explicit(&completed[row],
                          atomic_load_explicit(&vg_issued_ns[row], memory_order_relaxed),
                          memory_order_relaxed);
}

void vg_work_forgotten(CUcontext context)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct sample *sample = &slots[i];
        int state = PENDING;
        bool was_pending = atomic_compare_exchange_strong(&sample->state, &state, BUSY);
        if (!was_pending &&
            (state != FREE || !atomic_compare_exchange_strong(&sample->state, &state, BUSY)))
            continue; /* in use by a thread that still works in a context which ends: its error */
        bool is_gone = sample->context && sample->context == context;
        /* it may live on, where others have retained it: then nobody else would destroy them */
        if (is_gone)
            forget_events(sample);
        if (was_pending && !is_gone) {
            atomic_store_explicit(&sample->state, PENDING, memory_order_release);
        } else if (was_pending) {
            atomic_fetch_sub_explicit(&vg_samples_pending, 1, memory_order_relaxed);
            let_go(sample);
        } else {
            atomic_store_explicit(&sample->state, FREE, memory_order_release);
        }
    }
}

void vg_samples_forked(void)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        /* a context is not inherited, nor are its events */
        slots[i].context = NULL;
        atomic_store(&slots[i].state, FREE);
    }
    atomic_store(&vg_samples_pending, 0);
    atomic_store(&vg_samples_unknown, 0);
    for (int row = 0; row < VG_DEVICES; row++)
        vg_backlog_forget(row);
}

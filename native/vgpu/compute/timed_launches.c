/* Timing launches on the GPU: a pair of our own events around some of them.
 *
 * The events go into the application's stream, so the time between them is the kernel's and that of
 * what ran meanwhile. They are created in the stream's context, kept for the next sample of that
 * context, and asked lazily: only what no events can time is waited for. A slot is owned by whoever
 * moved it to BUSY, so no lock is held across a driver call.
 *
 * The samples also tell how far the GPU has come: each remembers how much GPU time the process had
 * issued before it. */
#include "compute/compute.h"
#include "compute/price_constants.h"

#define SLOTS 256u
#define MISSES 3u  /* so many that are not complete end a look through the slots */
#define FURTHER 2u /* and so many behind them: the first may be of kernels that do not end */

enum state { FREE, BUSY, PENDING };

struct vg_sample {
    _Atomic int state;
    _Atomic int row;
    struct vg_cost *cost;
    uint64_t key;                /* whose price that was when it was launched */
    CUcontext context;           /* whose events these are; NULL: none created */
    CUevent idle, before, after; /* idle: recorded right before `before`, where `is_calibrating` */
    bool is_calibrating, is_unknown;
    uint32_t stands_for;
    struct vg_overlap_place place; /* among those by which overlap is found (overlap.c) */
    uint64_t charged;
    uint64_t issued;       /* vg_issued_ns before it */
    uint64_t start;        /* when the GPU comes to it, about */
    _Atomic uint64_t mark; /* what to leave should the process end: see left_work.c */
    uint64_t since;        /* when the one timed before it was launched; 0: there is none */
    /* of an unknown one: host time in which the driver loaded its code; before that, since when */
    uint64_t loading;
    struct vg_contention contention;
};

static struct vg_sample slots[SLOTS];
static _Atomic uint32_t next, oldest; /* where to look first: the slots are used in turn */
static _Atomic uint32_t further;      /* where to look besides */
static _Atomic uint32_t first_slot;   /* of the group whose overlap is looked for */
static _Atomic uint64_t completed[VG_DEVICES];
static _Atomic uint64_t last_taken;           /* when a sample was last seen to be complete */
static _Atomic uint64_t empty_ns[VG_DEVICES]; /* what a pair of events around nothing shows */
_Atomic uint32_t vg_samples_pending, vg_samples_unknown;

/* Events may be destroyed from any context. */
static void forget_events(struct vg_sample *sample)
{
    REAL(cuEventDestroy_v2)(sample->idle);
    REAL(cuEventDestroy_v2)(sample->before);
    REAL(cuEventDestroy_v2)(sample->after);
    sample->context = NULL;
}

static bool made_events(struct vg_sample *sample)
{
    CUevent *events[] = {&sample->idle, &sample->before, &sample->after};
    for (int i = 0; i < 3; i++)
        if (REAL(cuEventCreate)(events[i], 0) != CUDA_SUCCESS) {
            while (i--)
                REAL(cuEventDestroy_v2)(*events[i]);
            return false;
        }
    return true;
}

static bool prepared(struct vg_sample *sample, CUcontext context, CUcontext current)
{
    if (sample->context == context)
        return true;
    if (sample->context)
        forget_events(sample);
    bool is_other = context != current;
    if (is_other && REAL(cuCtxPushCurrent_v2)(context) != CUDA_SUCCESS)
        return false;
    bool made = made_events(sample);
    if (is_other)
        REAL(cuCtxPopCurrent_v2)(&current);
    if (made)
        sample->context = context;
    return made;
}

static void let_go(struct vg_sample *sample)
{
    if (sample->is_unknown)
        atomic_fetch_sub_explicit(&vg_samples_unknown, 1, memory_order_relaxed);
    atomic_store_explicit(&sample->state, FREE, memory_order_release);
}

/* The next slot that is free, BUSY now. Where none is, one whose launch was charged what its kernel
 * is known to cost gives way to a kernel without a price, and to all where nothing has come back for
 * a while: what waits behind a stream that stands still must not keep all others from being timed.
 * (Where all is well, the oldest is the next to come back.) NULL: none. */
static struct vg_sample *free_slot(uint32_t *number, const struct vg_cost *cost)
{
    bool may_take =
        !atomic_load_explicit(&cost->predicted, memory_order_relaxed) ||
        vg_now_ns() > atomic_load_explicit(&last_taken, memory_order_relaxed) + QUIET_NS;
    *number = atomic_load_explicit(&next, memory_order_relaxed);
    for (uint32_t i = 0; i < (may_take ? 2 : 1) * SLOTS; i++) {
        struct vg_sample *sample = &slots[(*number + i) % SLOTS];
        int state = atomic_load_explicit(&sample->state, memory_order_relaxed);
        if (state != FREE && (state != PENDING || i < SLOTS || sample->is_unknown))
            continue;
        if (!atomic_compare_exchange_strong(&sample->state, &state, BUSY))
            continue; /* another thread was faster */
        if (state == PENDING)
            atomic_fetch_sub_explicit(&vg_samples_pending, 1, memory_order_relaxed);
        uint32_t far = *number;
        while ((int32_t)(*number + i % SLOTS + 1 - far) > 0 &&
               !atomic_compare_exchange_weak(&next, &far, *number + i % SLOTS + 1)) {
        }
        return sample;
    }
    return NULL;
}

static bool recorded(struct vg_sample *sample, CUcontext context, CUcontext current,
                     CUstream stream)
{
    return prepared(sample, context, current) &&
           (!sample->is_calibrating || REAL(cuEventRecord)(sample->idle, stream) == CUDA_SUCCESS) &&
           REAL(cuEventRecord)(sample->before, stream) == CUDA_SUCCESS;
}

/* Events belong to the stream's context, which need not be the current one. */
static bool has_begun(struct vg_sample *sample, CUstream stream)
{
    CUcontext current = NULL, its = NULL;
    int kept;
    if (!vg_captures_aside(&kept))
        return false;
    bool done = false;
    if (vg_is_handle(stream) && REAL(cuStreamGetCtx) &&
        REAL(cuStreamGetCtx)(stream, &its) != CUDA_SUCCESS)
        its = NULL;
    if (REAL(cuCtxGetCurrent)(&current) != CUDA_SUCCESS)
        current = NULL;
    if (its)
        done = recorded(sample, its, current, stream);
    if (!done && current && current != its)
        done = recorded(sample, current, current, stream);
    vg_captures_back(kept);
    return done;
}

void vg_sample_begin(struct vg_work *work, struct vg_cost *cost, uint64_t start, CUstream stream,
                     bool is_due)
{
    int row = work->row;
    uint32_t number;
    if (atomic_load_explicit(&vg_samples_pending, memory_order_relaxed))
        vg_samples_drain();
    struct vg_sample *sample = free_slot(&number, cost);
    if (!sample) {
        vg_overlap_missed();
        return;
    }
    sample->is_unknown = false;
    sample->is_calibrating = number % CALIBRATED == 0;
    if (!has_begun(sample, stream)) {
        vg_overlap_missed();
        atomic_store(&sample->state, FREE);
        work->is_timed = true;
        work->sample = NULL;
        work->unseen = cost;
        work->unseen_since = vg_now_ns();
        work->unseen_like = is_due ? vg_countdown_begin(cost) : 1;
        return;
    }
    sample->is_unknown = !atomic_load_explicit(&cost->predicted, memory_order_relaxed);
    if (sample->is_unknown)
        atomic_fetch_add_explicit(&vg_samples_unknown, 1, memory_order_relaxed);
    sample->row = row;
    sample->cost = cost;
    sample->key = atomic_load_explicit(&cost->key, memory_order_relaxed);
    sample->charged = work->predicted_ns;
    sample->issued = atomic_load_explicit(&vg_issued_ns[row], memory_order_relaxed);
    uint64_t now = vg_now_ns();
    sample->start = start > now ? start : now;
    atomic_store_explicit(&sample->mark, vg_unsettled_mark(row, sample->start),
                          memory_order_relaxed);
    sample->contention = vg_contention(row, now);
    sample->contention.siblings = vg_siblings(row, now);
    sample->stands_for = is_due ? vg_countdown_begin(cost) : 1;
    sample->since = atomic_exchange_explicit(&cost->timed_ns, now, memory_order_relaxed);
    sample->loading = vg_cost_is_unsure(cost) ? 0 : now; /* what is so was launched before */
    sample->place = vg_overlap_joined(row, stream, !sample->is_unknown);
    if (sample->place.group && !sample->place.at)
        atomic_store_explicit(&first_slot, (uint32_t)(sample - slots), memory_order_relaxed);
    work->is_timed = true;
    work->sample = sample;
}

/* Waits until the stream is done. What else it had to do is charged, too: where no event can be had
 * nobody shall be better off for it. */
static void time_by_waiting(const struct vg_work *work, CUstream stream)
{
    struct vg_cost *cost = work->unseen;
    uint64_t key = atomic_load_explicit(&cost->key, memory_order_relaxed);
    uint64_t since = work->unseen_since, now = since, nap = 20000;
    int kept;
    if (!vg_captures_aside(&kept))
        kept = -2; /* nothing may be asked */
    do {
        vg_sleep_until_ns(now + nap);
        now = vg_now_ns();
        nap = nap < 1000000 ? 2 * nap : nap;
    } while (now - since < (kept == -2 ? UNSEEN_NS : UNSEEN_MOST_NS) &&
             (kept == -2 || REAL(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY));
    vg_captures_back(kept);
    uint64_t last = atomic_exchange_explicit(&cost->timed_ns, since, memory_order_relaxed);
    struct vg_timed timed = {since,
                             now - since,
                             work->predicted_ns,
                             work->unseen_like,
                             last ? now - last : 0,
                             now,
                             vg_contention(work->row, now)};
    vg_owe(work->row, vg_cost_measured(cost, key, &timed));
}

void vg_sample_end(const struct vg_work *work, CUresult result, CUstream stream)
{
    struct vg_sample *sample = work->sample;
    int kept;
    if (!sample) {
        if (result == CUDA_SUCCESS)
            time_by_waiting(work, stream);
        return;
    }
    bool done = result == CUDA_SUCCESS && vg_captures_aside(&kept);
    if (done) {
        /* Where the GPU had come to the first event by now, the time of this call is in between,
         * and in the first one code is loaded. */
        bool spans = sample->is_unknown && sample->loading &&
                     REAL(cuEventQuery)(sample->before) == CUDA_SUCCESS;
        sample->loading = spans ? vg_now_ns() - sample->loading : 0;
        done = REAL(cuEventRecord)(sample->after, stream) == CUDA_SUCCESS;
        vg_captures_back(kept);
    }
    if (!done) {
        let_go(sample);
        return;
    }
    vg_unsettled_since(sample->row, atomic_load_explicit(&sample->mark, memory_order_relaxed),
                       false);
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

static void calibrate(struct vg_sample *sample)
{
    uint64_t seen = between(sample->idle, sample->before);
    uint64_t known = atomic_load_explicit(&empty_ns[sample->row], memory_order_relaxed);
    if (!seen || seen > MAX_EMPTY_NS) /* a slice of another in between */
        return;
    atomic_store_explicit(&empty_ns[sample->row], known ? (7 * known + seen) / 8 : seen,
                          memory_order_relaxed);
}

/* From when the first of its group began; false: not known. */
static bool since_first(const struct vg_sample *sample, double *ns)
{
    struct vg_sample *first = &slots[atomic_load_explicit(&first_slot, memory_order_relaxed)];
    int state = FREE;
    float ms = 0;
    *ns = 0;
    if (first == sample)
        return true;
    if (!atomic_compare_exchange_strong(&first->state, &state, BUSY) &&
        (state != PENDING || !atomic_compare_exchange_strong(&first->state, &state, BUSY)))
        return false;
    bool known = first->place.group == sample->place.group && first->context &&
                 REAL(cuEventElapsedTime)(&ms, first->before, sample->before) == CUDA_SUCCESS;
    atomic_store_explicit(&first->state, state, memory_order_release);
    *ns = (double)ms * 1e6;
    return known;
}

static void take(struct vg_sample *sample)
{
    if (sample->is_calibrating)
        calibrate(sample);
    uint64_t empty = atomic_load_explicit(&empty_ns[sample->row], memory_order_relaxed);
    uint64_t spanned = between(sample->before, sample->after), elapsed = spanned;
    if (sample->loading && elapsed > PRIOR_NS)
        elapsed = elapsed > sample->loading + PRIOR_NS ? elapsed - sample->loading : PRIOR_NS;
    uint64_t unsure = spanned - elapsed;
    uint64_t now = vg_now_ns();
    atomic_store_explicit(&last_taken, now, memory_order_relaxed);
    struct vg_contention at_end = vg_contention(sample->row, now);
    if (at_end.neighbours > sample->contention.neighbours)
        sample->contention = at_end;
    sample->contention.is_quiet &= at_end.is_quiet;
    at_end.siblings = vg_siblings(sample->row, now);
    if (at_end.siblings > sample->contention.siblings)
        sample->contention.siblings = at_end.siblings;
    struct vg_timed timed = {
        sample->start,      elapsed > empty ? elapsed - empty : 1,   sample->charged,
        sample->stands_for, sample->since ? now - sample->since : 0, now,
        sample->contention};
    if (elapsed)
        vg_owe(sample->row, unsure > timed.elapsed / UNSURE_PART
                                ? vg_cost_unsure(sample->cost, sample->key, &timed, unsure)
                                : vg_cost_measured(sample->cost, sample->key, &timed));
    double begin;
    bool is_cut =
        timed.contention.neighbours && (float)timed.elapsed > LONG_RUN((float)timed.charged);
    if (sample->place.group)
        vg_overlap_taken(sample->place, since_first(sample, &begin) ? &begin : NULL, timed.elapsed,
                         is_cut);
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
        struct vg_sample *sample = &slots[at % SLOTS];
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

/* Says what in [from, to) the process would leave now: of each GPU the oldest. */
static void mark_oldest(uint32_t from, uint32_t to)
{
    uint64_t marks[VG_DEVICES] = {0};
    uint32_t rows = vg_limits->n_devices, found = 0;
    for (uint32_t at = from; at != to && found < rows; at++) {
        struct vg_sample *sample = &slots[at % SLOTS];
        if (atomic_load_explicit(&sample->state, memory_order_acquire) != PENDING)
            continue;
        int row = atomic_load_explicit(&sample->row, memory_order_relaxed);
        if (!marks[row]) {
            marks[row] = atomic_load_explicit(&sample->mark, memory_order_relaxed);
            found++;
        }
    }
    for (uint32_t row = 0; row < rows; row++)
        vg_unsettled_since((int)row, marks[row], true);
    if (found && !atomic_load(&vg_samples_pending)) /* another thread took the last one meanwhile */
        for (uint32_t row = 0; row < rows; row++)
            vg_unsettled_since((int)row, 0, true);
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
    mark_oldest(done, to);
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

/* Settles what is complete in a context; how many are not yet. With `ending` it waits for none: the
 * oldest of them is noted there, and the context's events are destroyed. */
static uint32_t settle_in(CUcontext context, bool may_ask, struct vg_ending *ending)
{
    uint32_t waiting = 0;
    uint64_t oldest_start = UINT64_MAX;
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct vg_sample *sample = &slots[i];
        int state = PENDING;
        bool was_pending = atomic_compare_exchange_strong(&sample->state, &state, BUSY);
        if (!was_pending && (!ending || state != FREE ||
                             !atomic_compare_exchange_strong(&sample->state, &state, BUSY)))
            continue; /* in use by a thread that still works in a context which ends: its error */
        bool is_its = sample->context && sample->context == context;
        bool is_late = was_pending && is_its &&
                       (!may_ask || REAL(cuEventQuery)(sample->after) == CUDA_ERROR_NOT_READY);
        if (was_pending && (!is_its || (is_late && !ending))) {
            waiting += is_its;
            atomic_store_explicit(&sample->state, PENDING, memory_order_release);
            continue;
        }
        if (was_pending && !is_late) {
            take(sample);
        } else if (was_pending && sample->start < oldest_start) {
            oldest_start = sample->start;
            ending->row = atomic_load_explicit(&sample->row, memory_order_relaxed);
            ending->mark = atomic_load_explicit(&sample->mark, memory_order_relaxed);
        }
        if (is_its && ending) /* it may live on: then nobody else would destroy them */
            forget_events(sample);
        if (was_pending) {
            atomic_fetch_sub_explicit(&vg_samples_pending, 1, memory_order_relaxed);
            let_go(sample);
        } else {
            atomic_store_explicit(&sample->state, FREE, memory_order_release);
        }
    }
    return waiting;
}

void vg_work_ending(struct vg_ending *ending, CUcontext context)
{
    int kept;
    *ending = (struct vg_ending){.row = -1};
    bool may_ask = vg_captures_aside(&kept);
    uint64_t begun = vg_now_ns(), now = begun, nap = 50000;
    while (may_ask && now - begun < UNSEEN_MOST_NS && settle_in(context, true, NULL)) {
        vg_sleep_until_ns(now + nap);
        now = vg_now_ns();
        nap = nap < 1000000 ? 2 * nap : nap;
    }
    settle_in(context, may_ask, ending);
    if (may_ask)
        vg_captures_back(kept);
    vg_samples_drain(); /* the slot shall not say that the process leaves what is settled now */
}

void vg_work_ended(const struct vg_ending *ending)
{
    const struct vg_slot *slot = vg_slot_now();
    if (slot && ending->row >= 0)
        vg_leave_unsettled(slot, ending->row, ending->mark);
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

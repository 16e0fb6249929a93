/* GPU time: one bucket per GPU and container, shared by all its processes.
 *
 * The bucket is a single word, the theoretical arrival time of GCRA: the moment at which all GPU
 * time debited so far will have been earned at the container's rate. Who wants to launch waits
 * until that moment has come, then moves it on by cost / rate with one compare-and-swap. So there
 * is no refill thread, nothing to lose when a process is killed, no lock, and a new rate holds at
 * once. A tenant that could not use its time keeps at most BURST_NS of it; one that begins has
 * saved none.
 *
 * Threads take credit in batches, so that most launches touch no shared word. What a launch is
 * charged is predicted (kernel_costs.c); what it really cost is settled on the same word later
 * (vg_owe).
 *
 * At full rate (a soft tenant alone) nobody waits for credit, but no more than BACKLOG_NS of work
 * is left on the GPU's queue: a neighbour that wakes must not find seconds of it. Every wait ends:
 * credit is earned by the clock alone, and waits for the GPU are bounded. */
#include "compute/compute.h"
#include "compute/price_constants.h"

#define BATCH_NS 500000ull
#define BURST_NS 300000000ull
#define BACKLOG_NS 100000000ull
#define QUEUED_NS 10000000ull         /* the same where tenants take turns */
#define BACKLOG_WAIT_NS 1000000000ull /* longer than that, a kernel runs that waits for us */
#define NAP_NS 10000000ull            /* in a wait, limits are looked at again so often */
#define RATE_LEAST 1000ull            /* ppm: a wait has an end whatever the page says */

_Atomic uint64_t vg_issued_ns[VG_DEVICES];

/* starts: when the GPU will come to what this credit is for. aside: where all launches are timed,
 * credit is kept where a launch must ask for it. */
static VG_TLS struct {
    uint64_t ns, aside, starts;
    int row;
} credit = {0, 0, 0, -1};

static uint64_t rate_ppm(int row, uint64_t now)
{
    const volatile struct vg_device_limit *limit = &vg_limits->device[row];
    uint64_t percent = limit->compute_percent, granted = limit->rate_ppm;
    uint64_t rate = percent * (VG_PPM / 100);
    if (granted && now < limit->rate_until_ns)
        rate = granted;
    if (!percent || rate > VG_PPM) /* the limit was just lifted */
        return VG_PPM;
    return rate < RATE_LEAST ? RATE_LEAST : rate;
}

/* What a predicted nanosecond is charged: less where kernels run side by side, and as the server
 * says. */
static double scale_of(int row)
{
    uint64_t scale = vg_limits->device[row].cost_scale_ppm;
    return vg_overlap(row) * (double)(scale ? scale : VG_PPM) / (double)VG_PPM;
}

/* Time in which `ns` of predicted GPU time are earned; a double holds it to the nanosecond for
 * hours. */
static uint64_t earned_in(int row, uint64_t ns, uint64_t rate)
{
    return (uint64_t)((double)ns * scale_of(row) * (double)VG_PPM / (double)rate);
}

static struct vg_slot_device *account(int row)
{
    struct vg_slot *slot = vg_slot();
    return slot ? &slot->device[row] : NULL;
}

static void note_charged(int row, int64_t ns)
{
    struct vg_slot_device *device = account(row);
    int64_t scaled = (int64_t)((double)ns * scale_of(row));
    if (device)
        atomic_fetch_add_explicit(&device->charged_ns, (uint64_t)scaled, memory_order_relaxed);
}

/* Debts are kept as time at the rate of the day: a new rate makes them shorter or longer. Whoever
 * sees it first converts them; killed in between, it leaves a debt or a credit of milliseconds. */
static void follow(struct vg_bucket *bucket, uint64_t rate, uint64_t now)
{
    uint64_t before = atomic_load_explicit(&bucket->rate_ppm, memory_order_relaxed);
    if (likely(before == rate) ||
        !atomic_compare_exchange_strong(&bucket->rate_ppm, &before, rate) || !before)
        return;
    uint64_t tat = atomic_load(&bucket->tat_ns), moved;
    do {
        if (tat <= now)
            return;
        moved = now + (uint64_t)((double)(tat - now) * (double)before / (double)rate);
    } while (!atomic_compare_exchange_weak(&bucket->tat_ns, &tat, moved));
}

static void wait_for_gpu(int row)
{
    uint64_t begun = vg_now_ns(), now = begun, backlog;
    while (vg_samples_drain(), (backlog = vg_backlog(row)) > BACKLOG_NS) {
        if (now - begun > BACKLOG_WAIT_NS ||
            !atomic_load_explicit(&vg_samples_pending, memory_order_relaxed)) {
            vg_backlog_forget(row);
            return;
        }
        uint64_t nap = (backlog - BACKLOG_NS) / 2;
        vg_sleep_until_ns(now + (nap < 100000 ? 100000 : nap > NAP_NS ? NAP_NS : nap));
        now = vg_now_ns();
    }
}

/* When the GPU will have done what was debited: by what has come back of it, where no other process
 * of the container has work there; else by the clock, or later, where others hold it up. (By the
 * clock alone a kernel whose runs differ would leave the GPU idle each time that they were short.)
 * Two threads may each miss what the other adds just now; that is a batch, until the next debit. */
static uint64_t expected_end(int row, struct vg_bucket *bucket, uint64_t now)
{
    uint64_t busy = atomic_load_explicit(&bucket->busy_ns, memory_order_relaxed);
    if (!atomic_load_explicit(&vg_samples_pending, memory_order_relaxed))
        return busy > now ? busy : now;
    vg_samples_drain();
    /* corrected as charges are: kernels of several streams may run side by side */
    uint64_t by_samples = now + earned_in(row, vg_backlog(row), VG_PPM);
    return by_samples > busy || !vg_siblings(row, now) ? by_samples : busy;
}

/* When to look again whether to launch; 0: now is the time.
 *
 * Where tenants take turns, a tenant launches in its window while the GPU can still come to it
 * there, at full speed, as long as its debits do not reach beyond this period's earnings. Little of
 * it is queued ahead, lest what is held up should reach into the next window. So it meets nobody on
 * the GPU, which then need not switch between contexts, and what is timed is its own. Who falls
 * behind (its kernels are longer than its window, or another's overran) must not push into the
 * windows of others, or soon all would be behind. */
static uint64_t due(int row, uint64_t rate, uint64_t tat, uint64_t busy, uint64_t now)
{
    struct vg_contention turns = vg_contention(row, now);
    if (rate == VG_PPM || !turns.period)
        return rate == VG_PPM || tat <= now ? 0 : tat;
    uint64_t in = (now + turns.period - turns.begin) % turns.period, begin = now - in;
    /* A kernel begins while its window lasts, and the last one reaches over the end: the switches
     * that this costs are a twentieth of the time for which two meet; a kernel held back leaves the
     * GPU idle. */
    if (in >= turns.length || tat >= begin + turns.period || busy >= begin + turns.length)
        return begin + turns.period;
    /* It looks again at the latest when three quarters of that remain: runs that were shorter than
     * their mean would have left the GPU idle by the time when half of it should. */
    return busy > now + QUEUED_NS ? busy - QUEUED_NS / 4 * 3 : 0;
}

enum vg_pace vg_pace(int row, uint64_t now)
{
    if (rate_ppm(row, now) == VG_PPM)
        return VG_PACE_FREE;
    return vg_contention(row, now).period ? VG_PACE_TURNS : VG_PACE_EARNED;
}

/* The bucket can be set back by any process of the container; this cannot. */
static uint64_t not_before(int row)
{
    const volatile struct vg_device_limit *limit = &vg_limits->device[row];
    return limit->not_before_ns;
}

/* From when on what is debited now was earned. A bucket that was never debited is a container's
 * that just begins: nothing was kept from it yet. */
static uint64_t earned_from(uint64_t tat, uint64_t now)
{
    uint64_t least = now > BURST_NS ? now - BURST_NS : 0;
    return !tat ? now : tat < least ? least : tat;
}

/* Moves the bucket on by `ns` of GPU time, when it is time; returns when the GPU will come to
 * it. */
static uint64_t debit(int row, uint64_t ns)
{
    struct vg_bucket *bucket = &vg_counters->bucket[row];
    struct vg_slot_device *device = NULL;
    uint64_t begun = 0, now = vg_now_ns(), busy, starts;
    for (;;) {
        uint64_t rate = rate_ppm(row, now), when;
        follow(bucket, rate, now);
        uint64_t tat = atomic_load_explicit(&bucket->tat_ns, memory_order_relaxed);
        busy = expected_end(row, bucket, now);
        if ((when = not_before(row)) <= now && !(when = due(row, rate, tat, busy, now))) {
            uint64_t to = earned_from(tat, now) + earned_in(row, ns, rate);
            if (rate == VG_PPM && to > now + BACKLOG_NS)
                to = now + BACKLOG_NS; /* what may lie on the GPU's queue is all that can be owed */
            if (atomic_compare_exchange_strong(&bucket->tat_ns, &tat, to))
                break;
            continue;
        }
        if (!begun) {
            begun = now;
            if ((device = account(row)))
                atomic_fetch_add_explicit(&device->waiting, 1, memory_order_relaxed);
        }
        vg_sleep_until_ns(when - now < NAP_NS ? when : now + NAP_NS);
        vg_samples_drain();
        now = vg_now_ns();
    }
    starts = busy > now ? busy : now;
    atomic_store_explicit(&bucket->busy_ns, starts + earned_in(row, ns, VG_PPM),
                          memory_order_relaxed);
    if (begun && device) {
        atomic_fetch_sub_explicit(&device->waiting, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&device->throttled_ns, now - begun, memory_order_relaxed);
    }
    return starts;
}

/* A negative `ns` is a credit. The bucket never goes behind what an idle tenant would have. */
static void move(int row, int64_t ns)
{
    struct vg_bucket *bucket = &vg_counters->bucket[row];
    uint64_t now = vg_now_ns(), least = now > BURST_NS ? now - BURST_NS : 0;
    uint64_t by = earned_in(row, (uint64_t)(ns < 0 ? -ns : ns), rate_ppm(row, now));
    uint64_t tat = atomic_load_explicit(&bucket->tat_ns, memory_order_relaxed), to;
    do {
        uint64_t from = earned_from(tat, now);
        to = ns > 0 ? from + by : from > least + by ? from - by : least;
    } while (!atomic_compare_exchange_weak(&bucket->tat_ns, &tat, to));
    note_charged(row, ns);
}

void vg_owe(int row, int64_t ns)
{
    if (ns && vg_limits->device[row].compute_percent)
        move(row, ns);
}

static void give_back(int row, uint64_t ns)
{
    move(row, -(int64_t)ns);
    atomic_fetch_sub_explicit(&vg_issued_ns[row], ns, memory_order_relaxed);
}

/* Work that an ended process left (left_work.c): debited from the time at which it was done, so that
 * who comes much later finds it earned. Elapsed time is no prediction, which the server corrects. */
static __attribute__((noinline)) void debit_left(int row, struct vg_bucket *bucket)
{
    uint64_t left = atomic_load(&bucket->left_ns), before = atomic_load(&bucket->left_debited_ns);
    uint64_t ns = left - before, now = vg_now_ns(), at = atomic_load(&bucket->left_at_ns);
    if (!atomic_compare_exchange_strong(&bucket->left_debited_ns, &before, left) ||
        ns > VG_SLOTS * VG_LEFT_MOST_NS || at > now || at < ns)
        return;
    uint64_t tat = atomic_load(&bucket->tat_ns), to;
    do {
        uint64_t from = tat > at - ns ? tat : at - ns;
        to = from + (uint64_t)((double)ns * VG_PPM / (double)rate_ppm(row, now));
    } while (!atomic_compare_exchange_weak(&bucket->tat_ns, &tat, to));
    struct vg_slot_device *device = account(row);
    if (device)
        atomic_fetch_add_explicit(&device->charged_ns, ns, memory_order_relaxed);
}

void vg_limiter_flush(void)
{
    if (credit.row >= 0 && credit.ns + credit.aside)
        give_back(credit.row, credit.ns + credit.aside);
    credit.ns = credit.aside = 0;
}

static void take_batch(int row, uint64_t ns)
{
    struct vg_bucket *bucket = &vg_counters->bucket[row];
    if (unlikely(atomic_load_explicit(&bucket->left_ns, memory_order_relaxed) !=
                 atomic_load_explicit(&bucket->left_debited_ns, memory_order_relaxed)))
        debit_left(row, bucket);
    if (vg_backlog(row) > BACKLOG_NS)
        wait_for_gpu(row);
    uint64_t batch = ns < BATCH_NS ? BATCH_NS : ns;
    credit.starts = debit(row, batch);
    atomic_fetch_add_explicit(&vg_issued_ns[row], batch, memory_order_relaxed);
    note_charged(row, (int64_t)batch);
    credit.ns += batch;
}

/* Whether the launch that it is for shall be timed, however well its kernel is known. */
static __attribute__((noinline)) bool take_credit(int row, uint64_t ns)
{
    if (credit.row != row) {
        vg_limiter_flush();
        credit.row = row;
    }
    credit.ns += credit.aside;
    credit.aside = 0;
    bool is_short = credit.ns < ns;
    if (is_short)
        take_batch(row, ns - credit.ns);
    credit.ns -= ns;
    bool is_timed = vg_overlap_times(row, is_short ? credit.starts : 0);
    if (is_timed) {
        credit.aside = credit.ns;
        credit.ns = 0;
    }
    return is_timed;
}

/* A kernel of which nothing is known is launched a few times; then its first sample is waited for,
 * or, where that takes too long, the time waited so far is what it costs for now. So are the first
 * ones of all where many are not known yet: who makes each launch look new shall not work on
 * trust. Nor shall many processes that begin at once: those of a container that have a context on
 * the GPU share these few launches, but for one each. */
static __attribute__((noinline)) uint64_t price_of_stranger(int row, struct vg_cost *cost)
{
    enum { STRANGERS = 8, UNKNOWN = 32 };
    uint64_t price = PRIOR_NS, begun = vg_now_ns(), nap = 50000;
    uint32_t before = atomic_fetch_add_explicit(&cost->strangers, 1, memory_order_relaxed);
    bool is_new = !before || (before < STRANGERS && before * vg_processes(row) < STRANGERS);
    for (uint64_t now = begun; now - begun < 2 * NAP_NS;
         now = vg_now_ns(), nap = nap < 1000000 ? 2 * nap : nap) {
        if (is_new && atomic_load_explicit(&vg_samples_unknown, memory_order_relaxed) < UNKNOWN)
            return price;
        vg_samples_drain();
        uint64_t known = atomic_load_explicit(&cost->predicted, memory_order_relaxed);
        if (known)
            return known;
        if (!atomic_load_explicit(&vg_samples_pending, memory_order_relaxed))
            return price;
        vg_sleep_until_ns(now + nap);
    }
    return vg_now_ns() - begun;
}

static inline __attribute__((always_inline)) void charge(struct vg_work *work, const void *key,
                                                         uint64_t shape, CUstream stream)
{
    int row = work->row;
    struct vg_cost *cost = vg_cost(row, key, shape);
    uint64_t price = atomic_load_explicit(&cost->predicted, memory_order_relaxed);
    if (unlikely(!price))
        price = price_of_stranger(row, cost);
    work->predicted_ns = price;
    uint32_t epoch = atomic_load_explicit(&vg_costs_epoch, memory_order_relaxed);
    if (unlikely(atomic_load_explicit(&cost->used, memory_order_relaxed) != epoch))
        atomic_store_explicit(&cost->used, epoch, memory_order_relaxed);
    if (likely(credit.row == row && credit.ns >= price))
        credit.ns -= price;
    else if (take_credit(row, price)) {
        vg_sample_begin(work, cost, credit.starts, stream, false);
        return;
    }
    if (unlikely(vg_countdown_is_due(cost)))
        vg_sample_begin(work, cost, credit.starts, stream, true);
}

void vg_work_charge(struct vg_work *work, const void *key, uint64_t shape, CUstream stream)
{
    charge(work, key, shape, stream);
}

void vg_work_begin(struct vg_work *work, const void *key, uint64_t shape, CUstream stream)
{
    int row = vg_limits ? vg_stream_row(stream) : -1;
    work->row = row;
    work->is_timed = false;
    work->begun = 0;
    if (row < 0)
        return;
    if (likely(!vg_limits->device[row].compute_percent)) {
        work->row = -1;
        work->begun = vg_count_launch(row);
        return;
    }
    charge(work, key, shape, stream);
    work->begun = vg_count_launch(row); /* after all waits, which are no time of the driver */
}

void vg_work_end(struct vg_work *work, CUresult result, CUstream stream)
{
    if (unlikely(work->begun))
        vg_count_end(VG_CALL_LAUNCH, work->begun, 0);
    if (unlikely(work->is_timed))
        vg_sample_end(work, result, stream);
    if (unlikely(result != CUDA_SUCCESS) && work->row >= 0)
        give_back(work->row, work->predicted_ns);
}

void vg_work_synchronized(void)
{
    vg_count_flush();
    if (atomic_load_explicit(&vg_samples_pending, memory_order_relaxed))
        vg_samples_drain();
}

void vg_compute_forked(void)
{
    vg_costs_forked();
    vg_samples_forked();
    vg_overlap_forked();
    credit.ns = credit.aside = 0; /* the parent's thread still has it */
    atomic_store(&vg_captures, 0);
}

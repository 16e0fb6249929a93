/* What a kernel costs: a table of means, by kernel, shape of its grid, and GPU.
 *
 * The mean matters, not the minimum nor the last value: kernels jitter, and the same kernel may be
 * short or long by its data. Sampled launches give it; the window over which it moves grows with the
 * spread, so that a spread-out kernel does not make the rate of the whole container noisy.
 *
 * With neighbours on the GPU a pair of events also spans the time slices of others. Such a sample is
 * used only where no undisturbed one came for a while, and then less what the others took. What
 * remains wrong is the server's to correct (cost_scale_ppm), slowly.
 *
 * Readers take no lock. The lock is held for a few arithmetic operations, never across a driver
 * call; a forked child makes it anew. A full table makes strangers share one entry. */
#include "compute/compute.h"

#include <sched.h>

#define ENTRIES 4096u
#define PROBES 8u
#define SLICE_NS 2000000u          /* a time slice of NVIDIA's drivers, about */
#define STALE_MS 3000u             /* undisturbed samples are preferred for so long */
#define LATE_MS 150u               /* it takes so long until the page tells of a neighbour that woke */
#define EVENTS_NS 4000u            /* in which a slice may end, around a kernel that is timed */
#define OVERHEAD_NS 400000u        /* one timed launch per so much GPU time: two events cost about 2 us */
#define SPARSEST 256u

static struct vg_cost table[ENTRIES] __attribute__((aligned(64)));
static struct vg_cost crowd;
static atomic_flag lock = ATOMIC_FLAG_INIT;

static uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t h = a * 0x9E3779B97F4A7C15ull ^ (b + 0x7F4A7C15ull) * 0xD6E8FEB86659FD93ull;
    return h ^ h >> 29;
}

static struct vg_cost *claimed(uint64_t key)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct vg_cost *cost = &table[(key + i) % ENTRIES];
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(&cost->key, &found, key) || found == key)
            return cost;
    }
    return &crowd;
}

struct vg_cost *vg_cost(int row, const void *kernel, uint64_t shape)
{
    uint64_t key = mixed((uint64_t)(uintptr_t)kernel, shape * VG_DEVICES + (uint64_t)row) | 1;
    struct vg_cost *cost = &table[key % ENTRIES];
    if (likely(atomic_load_explicit(&cost->key, memory_order_relaxed) == key))
        return cost;
    return claimed(key);
}

uint32_t vg_cost_interval(uint64_t predicted)
{
    uint64_t launches = predicted ? OVERHEAD_NS / predicted : 1; /* 0: not known yet */
    if (launches < 2)
        return 1;
    if (launches > SPARSEST)
        launches = SPARSEST;
    /* At random distances, or a kernel whose cost alternates would be seen on one side only. */
    static _Thread_local uint32_t random __attribute__((tls_model("initial-exec"))) = 2463534242u;
    random ^= random << 13, random ^= random >> 17, random ^= random << 5;
    return (uint32_t)(launches / 2 + random % launches) + 1;
}

/* GPU time of its own in what the events span. While others are at work they have half of the time
 * (k others k / (k + 1): slices are equal), or what they are known to use where that is less. Where
 * tenants take turns, they are at work outside of the tenant's own windows. */
static double own_time(uint64_t start, uint64_t elapsed, struct vg_contention contention)
{
    if (!contention.neighbours || elapsed < SLICE_NS / 2)
        return (double)elapsed;
    double most = contention.neighbours / (contention.neighbours + 1.0);
    if (!contention.period) {
        double others = contention.others_ppm / (double)VG_PPM;
        return (double)elapsed * (1 - (others > 0 && others < most ? others : most));
    }
    double own = 0;
    for (uint64_t at = start, end = start + elapsed; at < end;) {
        uint64_t in = (at + contention.period - contention.begin) % contention.period;
        bool is_mine = in < contention.length;
        uint64_t until = at + (is_mine ? contention.length : contention.period) - in;
        until = until < end ? until : end;
        own += (double)(until - at) * (is_mine ? 1 : 1 - most);
        at = until;
    }
    return own;
}

static void note_least(struct vg_cost *cost, uint64_t elapsed)
{
    cost->least *= 1.0001f;
    if (!cost->count || (float)elapsed < cost->least)
        cost->least = (float)elapsed;
}

/* Whether it ran in the tenant's own window; a short kernel away from the edges, where the last one of
 * another may overrun. (A long one may have met that: see vg_cost_measured.) */
static bool is_inside(uint64_t start, uint64_t elapsed, struct vg_contention contention, bool has_long)
{
    if (!contention.period)
        return false;
    uint64_t in = (start + contention.period - contention.begin) % contention.period;
    uint64_t edge = contention.length / 8 < 4 * SLICE_NS ? contention.length / 8 : 4 * SLICE_NS;
    if (elapsed > SLICE_NS && !has_long)
        edge = 0;
    return in >= edge && in + elapsed + edge < contention.length;
}

/* Samples over which the mean moves: enough that its error is about 1.4 %. Of long kernels each launch
 * is timed, and charged what it took, so that their mean may be rough. */
static double window(const struct vg_cost *cost)
{
    double spread = cost->count > 1 ? cost->square / ((double)cost->mean * cost->mean) - 1 : 0;
    double samples = 2500 * spread, most = cost->mean > OVERHEAD_NS ? 16 : 4096;
    return samples < 16 ? 16 : samples > most ? most : samples;
}

static void learn(struct vg_cost *cost, double ns)
{
    double samples = window(cost);
    double weight = cost->count + 1 < samples ? 1.0 / (cost->count + 1) : 1 / samples;
    cost->mean += (float)(weight * (ns - cost->mean));
    cost->square += (float)(weight * (ns * ns - cost->square));
    if (cost->count < UINT32_MAX)
        cost->count++;
}

/* Slices of others cut a kernel the seldomer the shorter it is. One that takes much longer far more often
 * than that has long runs of its own. */
static bool has_long_runs(const struct vg_cost *cost)
{
    return cost->long_runs > 0.04f + 4 * (cost->least + EVENTS_NS) / SLICE_NS;
}

static float longest_short(const struct vg_cost *cost)
{
    return 4 * cost->least + SLICE_NS / 4;
}

static void note_length(struct vg_cost *cost, uint64_t elapsed)
{
    note_least(cost, elapsed);
    if (cost->count >= 8) /* by then the least is one that was not cut */
        cost->long_runs += (((float)elapsed > longest_short(cost)) - cost->long_runs) / 64;
}

/* A short kernel that takes much longer now and then either was cut by a slice of another, which says
 * nothing of itself, or does have long runs. Seldom, and with neighbours, it was cut. Without, they may
 * have come just now: such samples count, and what was not charged is owed, once it is sure that nobody
 * came. */
static bool is_doubtful(struct vg_cost *cost, uint64_t elapsed, uint32_t neighbours, uint32_t now_ms, int64_t *owed)
{
    float longest = longest_short(cost);
    if (neighbours) {
        if (cost->count && cost->count < 16 && cost->mean > longest && !has_long_runs(cost))
            cost->count = 0; /* the first ones were cut */
        cost->doubts = 0;
    } else if (cost->doubts && now_ms - cost->doubt_ms > LATE_MS) {
        *owed += (int64_t)(((double)cost->doubted - cost->mean) * cost->doubts);
        for (; cost->doubts; cost->doubts--)
            learn(cost, cost->doubted);
    }
    if ((float)elapsed <= longest || has_long_runs(cost))
        return false;
    /* A short one is cut once at most: what takes longer than all others' slices is a long run. */
    if (neighbours && elapsed > SLICE_NS + neighbours * (SLICE_NS + SLICE_NS / 4))
        return false;
    if (!neighbours) {
        if (!cost->doubts++)
            cost->doubt_ms = now_ms;
        cost->doubted += ((float)elapsed - cost->doubted) / (float)cost->doubts;
    }
    return true;
}

int64_t vg_cost_measured(struct vg_cost *cost, uint64_t start, uint64_t elapsed, uint64_t charged,
                         uint32_t stands_for, struct vg_contention contention, uint64_t now)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        sched_yield();
    uint32_t now_ms = (uint32_t)(now / 1000000) | 1;
    /* Processes of one container that begin together are in one another's way before their launches are
     * spaced out by the limit. */
    uint32_t disturbers = contention.neighbours + contention.siblings;
    if (contention.siblings && cost->count < 8)
        contention = (struct vg_contention){.neighbours = disturbers};
    double ns = own_time(start, elapsed, contention);
    note_length(cost, elapsed);
    bool has_long = has_long_runs(cost);
    bool is_alone = contention.is_quiet || (is_inside(start, elapsed, contention, has_long) &&
                                            (has_long || (float)elapsed < 1.6f * cost->least + SLICE_NS / 4));
    bool was_alone = cost->alone_ms && now_ms - cost->alone_ms < STALE_MS;
    bool is_known = cost->count >= 16 && cost->count >= window(cost) / 8;
    if (is_alone) {
        /* What was learnt beside others is worth less than the first sample without. */
        if (!was_alone && cost->count > 1)
            cost->count = 1;
        cost->alone_ms = now_ms;
    }
    int64_t owed = 0;
    bool is_cut = is_doubtful(cost, elapsed, disturbers, now_ms, &owed);
    if (!is_alone && was_alone && is_known) {
        owed += (int64_t)cost->mean - (int64_t)charged;
    } else if (is_cut) {
        /* Of runs that differ, the end of a slice hits one the likelier the longer it is. */
        if (disturbers && is_known)
            learn(cost, cost->square / cost->mean);
        owed += cost->count ? (int64_t)cost->mean - (int64_t)charged : 0;
    } else {
        learn(cost, ns);
        owed += (int64_t)ns - (int64_t)charged;
        if (cost->count <= 32) /* until the mean stands, also for those that it stands for */
            owed += ((int64_t)cost->mean - (int64_t)charged) * (int64_t)(stands_for - 1);
    }
    if (cost->count) {
        uint64_t predicted = (uint64_t)cost->mean;
        atomic_store_explicit(&cost->predicted, predicted ? predicted : 1, memory_order_relaxed);
    }
    atomic_flag_clear_explicit(&lock, memory_order_release);
    return owed;
}

void vg_costs_forked(void)
{
    atomic_flag_clear(&lock);
}

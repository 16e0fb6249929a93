/* What a kernel costs: a table of means, by kernel, shape of its grid, and GPU.
 *
 * The mean matters, not the minimum nor the last value: kernels jitter, and the same kernel may be
 * short or long by its data. Sampled launches give it; the window over which it moves grows with the
 * spread, so that a spread-out kernel does not make the rate of the whole container noisy.
 *
 * With neighbours on the GPU a pair of events also spans the time slices of others. Such a sample is
 * used only where none without neighbours came for a while, and is then deflated by what the others
 * are known to use. What remains wrong is the server's to correct (cost_scale_ppm), slowly.
 *
 * Readers take no lock. The lock is held for a few arithmetic operations, never across a driver
 * call; a forked child makes it anew. A full table makes strangers share one entry. */
#include "compute.h"

#include <sched.h>

#define ENTRIES 4096u
#define PROBES 8u
#define SLICE_NS 2000000u          /* a time slice of NVIDIA's drivers, about */
#define STALE_NS 60000000000ull    /* samples without neighbours are preferred for so long */
#define TRUSTED 4u                 /* ...if there were that many */
#define OVERHEAD_NS 400000u        /* one timed launch per so much GPU time: two events cost about 2 us */
#define SPARSEST 128u

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
    uint64_t launches = OVERHEAD_NS / (predicted + 1);
    if (launches < 2)
        return 1;
    if (launches > SPARSEST)
        launches = SPARSEST;
    /* At random distances, or a kernel whose cost alternates would be seen on one side only. */
    static _Thread_local uint32_t random __attribute__((tls_model("initial-exec"))) = 2463534242u;
    random ^= random << 13, random ^= random >> 17, random ^= random << 5;
    return (uint32_t)(launches / 2 + random % launches) + 1;
}

/* GPU time of its own in what the events span. */
static double deflated(double elapsed, struct vg_contention contention)
{
    if (!contention.neighbours || elapsed < SLICE_NS / 2)
        return elapsed;
    double most = contention.neighbours / (contention.neighbours + 1.0); /* slices are equal */
    double others = contention.others_ppm / (double)VG_PPM;
    return elapsed * (1 - (others > 0 && others < most ? others : most));
}

static void learn(struct vg_cost *cost, double ns)
{
    double spread = cost->count > 1 ? cost->square / ((double)cost->mean * cost->mean) - 1 : 0;
    double window = 2500 * spread; /* a mean to about 1.4 % */
    window = window < 16 ? 16 : window > 4096 ? 4096 : window;
    double weight = cost->count + 1 < window ? 1.0 / (cost->count + 1) : 1 / window;
    cost->mean += (float)(weight * (ns - cost->mean));
    cost->square += (float)(weight * (ns * ns - cost->square));
    if (cost->count < UINT32_MAX)
        cost->count++;
}

int64_t vg_cost_measured(struct vg_cost *cost, uint64_t elapsed, uint64_t charged, uint32_t stands_for,
                         struct vg_contention contention, uint64_t now)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        sched_yield();
    double ns = deflated((double)elapsed, contention);
    if (!contention.neighbours) {
        /* What was learnt beside neighbours is worth less than the first sample without. */
        if (!cost->alone_ns || now > cost->alone_ns + STALE_NS)
            cost->count = cost->count > 1 ? 1 : cost->count;
        cost->alone_ns = now;
    }
    bool is_known = cost->count >= TRUSTED;
    bool is_worse = contention.neighbours && is_known && cost->alone_ns && now < cost->alone_ns + STALE_NS;
    /* A short kernel that was cut by a slice of another says nothing of itself. */
    bool is_cut = contention.neighbours && is_known && cost->mean < SLICE_NS / 4 &&
                  elapsed > 4 * cost->mean + SLICE_NS / 4;
    int64_t owed = 0;
    if (is_worse || is_cut) {
        owed = (int64_t)cost->mean - (int64_t)charged;
    } else {
        if (contention.neighbours && !is_known && cost->count && ns * 8 < cost->mean)
            cost->count = 0; /* the first one was cut */
        learn(cost, ns);
        owed = (int64_t)ns - (int64_t)charged;
        if (cost->count <= 32) /* until the mean stands, also for those that it stands for */
            owed += ((int64_t)cost->mean - (int64_t)charged) * (int64_t)(stands_for - 1);
    }
    uint64_t predicted = (uint64_t)cost->mean;
    atomic_store_explicit(&cost->predicted, predicted ? predicted : 1, memory_order_relaxed);
    atomic_flag_clear_explicit(&lock, memory_order_release);
    return owed;
}

void vg_costs_forked(void)
{
    atomic_flag_clear(&lock);
}

/* What a kernel costs: a table of prices, by kernel, shape of its grid, and GPU; how a sample
 * changes one is price_update.c's.
 *
 * Readers take no lock. The lock is held for a few arithmetic operations, never across a driver
 * call; a forked child makes it anew. A full table makes strangers share one entry. */
#include <sched.h>
#include <string.h>

#include "compute/compute.h"
#include "compute/price_constants.h"

#define ENTRIES 4096u
#define PROBES 8u

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
    /* 0: not known yet */
    uint64_t launches = predicted ? OVERHEAD_NS / predicted : 1;
    if (launches < 2)
        return 1;
    if (launches > SPARSEST)
        launches = SPARSEST;
    /* At random distances, or a kernel whose cost alternates would be seen on one side only. */
    static _Thread_local uint32_t random __attribute__((tls_model("initial-exec"))) = 2463534242u;
    random ^= random << 13, random ^= random >> 17, random ^= random << 5;
    return (uint32_t)(launches / 2 + random % launches) + 1;
}

uint32_t vg_cost_samples(const struct vg_cost *cost)
{
    return __atomic_load_n(&cost->price.count, __ATOMIC_RELAXED);
}

/* The lock is held; readers look at the count without it. */
static void keep(struct vg_cost *cost, const struct vg_price *price)
{
    size_t counted = sizeof price->count;
    memcpy((char *)&cost->price + counted, (const char *)price + counted, sizeof *price - counted);
    __atomic_store_n(&cost->price.count, price->count, __ATOMIC_RELAXED);
}

int64_t vg_cost_measured(struct vg_cost *cost, const struct vg_timed *timed)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        sched_yield();
    struct vg_price_change change = vg_price_update(cost->price, timed);
    keep(cost, &change.price);
    if (change.price.count) {
        uint64_t predicted = (uint64_t)change.price.mean;
        atomic_store_explicit(&cost->predicted, predicted ? predicted : 1, memory_order_relaxed);
    }
    atomic_flag_clear_explicit(&lock, memory_order_release);
    return change.owed;
}

void vg_costs_forked(void)
{
    atomic_flag_clear(&lock);
}

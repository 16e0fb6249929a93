/* What a kernel costs: a table of prices, by kernel, shape of its grid, and GPU; how a sample
 * changes one is price_update.c's.
 *
 * Readers take no lock. The lock is held for a few arithmetic operations, never across a driver
 * call; a forked child makes it anew. Where the table is full a new kernel takes the place of one
 * that was not launched for a while; where there is none, strangers share one entry. */
#include <sched.h>
#include <string.h>

#include "compute/compute.h"
#include "compute/price_constants.h"

#define ENTRIES 4096u
#define PROBES 8u
#define UNUSED_NS 1000000000ull /* so long not launched: its place may be taken. Choice */
#define SELDOM 16u /* of so many launches without a place of their own one looks for it. Choice */

static struct vg_cost table[ENTRIES] __attribute__((aligned(64)));
static struct vg_cost crowd;
static atomic_flag lock = ATOMIC_FLAG_INIT;

static uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t h = a * 0x9E3779B97F4A7C15ull ^ (b + 0x7F4A7C15ull) * 0xD6E8FEB86659FD93ull;
    return h ^ h >> 29;
}

static void lock_begin(void)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        sched_yield();
}

static void lock_end(void)
{
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

/* The lock is held. Each launch moves `left`, or is timed. */
static bool is_unused(struct vg_cost *cost, uint64_t now)
{
    uint32_t left = atomic_load_explicit(&cost->left, memory_order_relaxed);
    if (left != cost->seen_left || !cost->seen_ns) {
        cost->seen_left = left;
        cost->seen_ns = now;
    }
    uint64_t timed = atomic_load_explicit(&cost->timed_ns, memory_order_relaxed);
    return now > (timed > cost->seen_ns ? timed : cost->seen_ns) + UNUSED_NS;
}

/* The lock is held; readers look at the count without it. */
static void keep(struct vg_cost *cost, const struct vg_price *price)
{
    size_t counted = sizeof price->count;
    memcpy((char *)&cost->price + counted, (const char *)price + counted, sizeof *price - counted);
    __atomic_store_n(&cost->price.count, price->count, __ATOMIC_RELAXED);
}

/* Who still launches what was here counts into the wrong entry once; what it timed does not
 * (vg_cost_measured). */
static void forget(struct vg_cost *cost, uint64_t key)
{
    atomic_store(&cost->key, 0x2); /* nobody's: keys are odd */
    atomic_store_explicit(&cost->predicted, 0, memory_order_relaxed);
    atomic_store_explicit(&cost->left, 0, memory_order_relaxed);
    atomic_store_explicit(&cost->interval, 0, memory_order_relaxed);
    atomic_store_explicit(&cost->strangers, 0, memory_order_relaxed);
    atomic_store_explicit(&cost->timed_ns, 0, memory_order_relaxed);
    keep(cost, &(struct vg_price){0});
    cost->seen_left = 0, cost->seen_ns = 0;
    atomic_store(&cost->key, key);
}

/* An entry among the key's own that is not in use any more; NULL: none, or not looked for now. */
static struct vg_cost *taken_over(uint64_t key)
{
    static _Atomic uint32_t asked;
    struct vg_cost *found = NULL;
    if (atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed) % SELDOM)
        return NULL;
    uint64_t now = vg_now_ns();
    lock_begin();
    for (uint32_t i = 0; i < PROBES; i++) {
        struct vg_cost *cost = &table[(key + i) % ENTRIES];
        if (atomic_load_explicit(&cost->key, memory_order_relaxed) == key) {
            found = cost; /* another thread was faster */
            break;
        }
        if (is_unused(cost, now) && !found)
            found = cost;
    }
    if (found && atomic_load_explicit(&found->key, memory_order_relaxed) != key)
        forget(found, key);
    lock_end();
    return found;
}

static __attribute__((noinline)) struct vg_cost *claimed(uint64_t key)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct vg_cost *cost = &table[(key + i) % ENTRIES];
        uint64_t found = 0;
        if (atomic_compare_exchange_strong(&cost->key, &found, key) || found == key)
            return cost;
    }
    struct vg_cost *cost = taken_over(key);
    return cost ? cost : &crowd;
}

struct vg_cost *vg_cost(int row, const void *kernel, uint64_t shape)
{
    uint64_t key = mixed((uint64_t)(uintptr_t)kernel, shape * VG_DEVICES + (uint64_t)row) | 1;
    struct vg_cost *cost = &table[key % ENTRIES];
    if (likely(atomic_load_explicit(&cost->key, memory_order_relaxed) == key))
        return cost;
    return claimed(key);
}

/* Launches from one that is timed to the next. */
static uint32_t interval_of(uint64_t predicted)
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

void vg_cost_timed(struct vg_cost *cost)
{
    uint32_t interval = interval_of(atomic_load_explicit(&cost->predicted, memory_order_relaxed));
    if (__atomic_load_n(&cost->price.count, __ATOMIC_RELAXED) < MANY && interval > DENSE)
        interval = DENSE;
    atomic_store_explicit(&cost->interval, interval, memory_order_relaxed);
    atomic_store_explicit(&cost->left, interval - 1, memory_order_relaxed);
}

int64_t vg_cost_measured(struct vg_cost *cost, uint64_t key, const struct vg_timed *timed)
{
    lock_begin();
    if (atomic_load_explicit(&cost->key, memory_order_relaxed) != key) {
        lock_end(); /* another kernel has its place by now */
        return (int64_t)timed->elapsed - (int64_t)timed->charged;
    }
    struct vg_price_change change = vg_price_update(cost->price, timed);
    keep(cost, &change.price);
    if (change.price.count) {
        uint64_t predicted = (uint64_t)change.price.mean;
        atomic_store_explicit(&cost->predicted, predicted ? predicted : 1, memory_order_relaxed);
    }
    lock_end();
    return change.owed;
}

void vg_costs_forked(void)
{
    atomic_flag_clear(&lock);
}

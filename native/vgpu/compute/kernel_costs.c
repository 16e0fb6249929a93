/* What a kernel costs: a table of prices, by kernel, shape of its grid, and GPU; how a sample
 * changes one is price_update.c's. Which launches are timed each thread counts for itself: a count
 * that all of them stored into, a line that all of them read, would go from core to core.
 *
 * Readers take no lock. The lock is held for a few arithmetic operations, never across a driver
 * call; a forked child makes it anew. Where the table is full a new kernel takes the place of one
 * that was not launched for a while; where there is none, strangers share one entry. */
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "compute/compute.h"
#include "compute/price_constants.h"

#define ENTRIES 4096u
#define PROBES 8u
#define UNUSED_NS 1000000000ull /* so long not launched: its place may be taken. Choice */
#define SELDOM 16u /* of so many launches without a place of their own one looks for it. Choice */

static struct vg_cost table[ENTRIES] __attribute__((aligned(64)));
static struct vg_cost crowd;
/* ns that unsure launches may have taken and were not charged; given back where a price is known, not
 * where an entry is forgotten */
static float trusted;
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

_Atomic uint32_t vg_costs_epoch = 1;

/* The lock is held. An epoch begins with a look for a place, no sooner than that after the last. */
static uint32_t epoch_at(uint64_t now)
{
    static uint64_t begun;
    uint32_t epoch = atomic_load_explicit(&vg_costs_epoch, memory_order_relaxed);
    if (!begun)
        begun = now;
    if (now > begun + UNUSED_NS) {
        begun = now;
        atomic_store_explicit(&vg_costs_epoch, ++epoch, memory_order_relaxed);
    }
    return epoch;
}

/* Not launched in all of the epoch before this one. */
static bool is_unused(const struct vg_cost *cost, uint32_t epoch)
{
    return (int32_t)(epoch - atomic_load_explicit(&cost->used, memory_order_relaxed)) > 1;
}

/* The lock is held; `distance` reads the first two without it. */
static void keep(struct vg_cost *cost, const struct vg_price *price)
{
    size_t rest = offsetof(struct vg_price, mean);
    memcpy((char *)&cost->price + rest, (const char *)price + rest, sizeof *price - rest);
    __atomic_store_n(&cost->price.count, price->count, __ATOMIC_RELAXED);
    float long_runs = price->long_runs;
    __atomic_store(&cost->price.long_runs, &long_runs, __ATOMIC_RELAXED);
}

/* The lock is held. */
static void no_longer_unsure(struct vg_cost *cost)
{
    atomic_store_explicit(&cost->unsure, 0, memory_order_relaxed);
    cost->at_least = cost->at_most = 0;
}

/* Who still launches what was here counts into the wrong entry once; what it timed does not
 * (vg_cost_measured). */
static void forget(struct vg_cost *cost, uint64_t key)
{
    atomic_store(&cost->key, 0x2); /* nobody's: keys are odd */
    atomic_store_explicit(&cost->predicted, 0, memory_order_relaxed);
    atomic_store_explicit(&cost->used, atomic_load(&vg_costs_epoch), memory_order_relaxed);
    atomic_store_explicit(&cost->strangers, 0, memory_order_relaxed);
    atomic_store_explicit(&cost->timed_ns, 0, memory_order_relaxed);
    no_longer_unsure(cost);
    keep(cost, &(struct vg_price){0});
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
    uint32_t epoch = epoch_at(now);
    for (uint32_t i = 0; i < PROBES; i++) {
        struct vg_cost *cost = &table[(key + i) % ENTRIES];
        if (atomic_load_explicit(&cost->key, memory_order_relaxed) == key) {
            found = cost; /* another thread was faster */
            break;
        }
        if (is_unused(cost, epoch) && !found)
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

/* ---- which launches are timed ---------------------------------------------------------------- */

VG_TLS struct vg_countdown *vg_countdowns;

static uint32_t random_number(void)
{
    static _Atomic uint32_t threads;
    static VG_TLS uint32_t random;
    if (!random)
        random = 2463534242u + 0x9E3779B9u * atomic_fetch_add(&threads, 1);
    random ^= random << 13, random ^= random >> 17, random ^= random << 5;
    return random;
}

/* Few samples are known, or one of the last took long: whether it has long runs shows soon. */
static bool is_taken_densely(const struct vg_price *price)
{
    float long_runs;
    __atomic_load(&price->long_runs, &long_runs, __ATOMIC_RELAXED);
    return __atomic_load_n(&price->count, __ATOMIC_RELAXED) < MANY || long_runs > LONG_SEEN;
}

/* Launches from one that is timed to the next, in the mean. */
static uint32_t distance(const struct vg_cost *cost)
{
    uint64_t predicted = atomic_load_explicit(&cost->predicted, memory_order_relaxed);
    /* 0: not known yet */
    uint64_t launches = predicted ? OVERHEAD_NS / predicted : 1;
    launches = launches < 1 ? 1 : launches > SPARSEST ? SPARSEST : launches;
    if (launches > DENSE && is_taken_densely(&cost->price))
        launches = DENSE;
    return (uint32_t)launches;
}

static struct vg_countdown *countdown_of(uint64_t key)
{
    if (unlikely(!vg_countdowns) && !(vg_countdowns = calloc(VG_COUNTDOWNS, sizeof *vg_countdowns)))
        return NULL;
    return &vg_countdowns[key >> 1 & (VG_COUNTDOWNS - 1)];
}

/* Of a kernel that is known the first one to be timed is any of as many as a sample stands for, and
 * stands for them all, though the thread may launch fewer: so the mean over many threads is right,
 * and who launches from ever new ones neither times all nor evades. */
bool vg_countdown_found(const struct vg_cost *cost, uint64_t key)
{
    struct vg_countdown *its = countdown_of(key);
    uint32_t launches = distance(cost);
    if (!its)
        return true;
    uint32_t left = launches > 1 ? random_number() % launches : 0;
    *its = (struct vg_countdown){(uint32_t)(key >> 32), (uint16_t)left, (uint16_t)launches};
    if (!left)
        return true;
    its->left--;
    return false;
}

uint32_t vg_countdown_begin(const struct vg_cost *cost)
{
    uint64_t key = atomic_load_explicit(&cost->key, memory_order_relaxed);
    struct vg_countdown *its = countdown_of(key);
    uint32_t launches = distance(cost);
    if (!its)
        return 1; /* all are timed */
    bool is_its = its->tag == (uint32_t)(key >> 32);
    uint32_t stands_for = is_its ? its->interval : 1;
    /* At random distances, or a kernel whose cost alternates would be seen on one side only. */
    if (launches > 1)
        launches = launches / 2 + random_number() % launches + 1;
    *its =
        (struct vg_countdown){(uint32_t)(key >> 32), (uint16_t)(launches - 1), (uint16_t)launches};
    return stands_for ? stands_for : 1;
}

void vg_countdowns_end(void)
{
    free(vg_countdowns);
    vg_countdowns = NULL;
}

/* ---- prices ---------------------------------------------------------------------------------- */

/* The lock is held. What they took beyond what was charged, now that it is known what one takes. */
static int64_t owed_for_unsure(struct vg_cost *cost, float each)
{
    float took = (float)atomic_load_explicit(&cost->unsure, memory_order_relaxed) * each;
    took = took < cost->at_least ? cost->at_least : took > cost->at_most ? cost->at_most : took;
    int64_t owed = (int64_t)(took - cost->at_least);
    float left = trusted - (cost->at_most - cost->at_least);
    trusted = left > 0 ? left : 0;
    no_longer_unsure(cost);
    return owed;
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
        change.owed += owed_for_unsure(cost, change.price.mean);
        uint64_t predicted = (uint64_t)change.price.mean;
        atomic_store_explicit(&cost->predicted, predicted ? predicted : 1, memory_order_relaxed);
    }
    lock_end();
    return change.owed;
}

int64_t vg_cost_unsure(struct vg_cost *cost, uint64_t key, const struct vg_timed *timed,
                       uint64_t more)
{
    float least = (float)timed->elapsed, most = least + (float)more;
    lock_begin();
    /* What is not launched again would have it for nothing: that is no more than this, in all. */
    if (atomic_load_explicit(&cost->key, memory_order_relaxed) != key ||
        trusted + most - least > TRUST_NS)
        least = most;
    else
        trusted += most - least;
    if (atomic_load_explicit(&cost->key, memory_order_relaxed) == key) {
        cost->at_least += least;
        cost->at_most += most;
        atomic_fetch_add_explicit(&cost->unsure, 1, memory_order_relaxed);
    }
    lock_end();
    return (int64_t)least - (int64_t)timed->charged;
}

void vg_costs_forked(void)
{
    atomic_flag_clear(&lock);
}

/* Who else works on the GPU: neighbours, as the server says in the limits page, and processes of
 * the same container, as the counters page tells. */
#include "compute/compute.h"
#include "compute/price_constants.h"

/* when neighbours were last seen, or the first look */
static _Atomic uint64_t disturbed[VG_DEVICES];

uint32_t vg_siblings(int row, uint64_t now)
{
    static _Atomic uint64_t looked[VG_DEVICES];
    static _Atomic uint32_t found[VG_DEVICES], seen[VG_DEVICES][VG_SLOTS];
    uint64_t last = atomic_load_explicit(&looked[row], memory_order_relaxed);
    if (now < last + LOOK_NS || !atomic_compare_exchange_strong(&looked[row], &last, now))
        return atomic_load_explicit(&found[row], memory_order_relaxed);
    const struct vg_slot *mine = vg_slot();
    uint64_t used = atomic_load_explicit(&vg_counters->slots_used, memory_order_relaxed);
    uint32_t count = 0;
    for (uint64_t i = 0; i < used && i < VG_SLOTS; i++) {
        const struct vg_slot *slot = &vg_counters->slot[i];
        uint32_t charged =
            (uint32_t)atomic_load_explicit(&slot->device[row].charged_ns, memory_order_relaxed);
        uint32_t before = atomic_exchange_explicit(&seen[row][i], charged, memory_order_relaxed);
        count += slot != mine && charged != before;
    }
    atomic_store_explicit(&found[row], count, memory_order_relaxed);
    return count;
}

uint32_t vg_processes(int row)
{
    uint64_t used = atomic_load_explicit(&vg_counters->slots_used, memory_order_relaxed);
    uint32_t count = 0;
    for (uint64_t i = 0; i < used && i < VG_SLOTS; i++)
        count += atomic_load_explicit(&vg_counters->slot[i].device[row].contexts,
                                      memory_order_relaxed) > 0;
    return count;
}

struct vg_contention vg_contention(int row, uint64_t now)
{
    const volatile struct vg_device_limit *limit = &vg_limits->device[row];
    struct vg_contention found = {.neighbours = limit->neighbours, .others_ppm = limit->others_ppm};
    uint64_t last = atomic_load_explicit(&disturbed[row], memory_order_relaxed);
    if (found.neighbours || !last)
        atomic_store_explicit(&disturbed[row], now, memory_order_relaxed);
    else
        found.is_quiet = now > last + QUIET_NS;
    uint64_t period = limit->window_period_us * 1000ull;
    if (period && now < limit->rate_until_ns) {
        found.period = period;
        found.begin = limit->window_begin_us * 1000ull % period;
        found.length = limit->window_us * 1000ull;
    }
    return found;
}

/* GPU time that a process leaves unsettled when it ends.
 *
 * A launch whose kernel has no price yet is charged a guess, and the rest when its timing comes back.
 * Who ends before that would have it for nothing, process after process. So each process says in its
 * slot since when the GPU may have been at work on what is not settled, and whoever frees the slot
 * of a dead one adds what has passed since to the container's bucket. The next launch of any process
 * of the container debits that, as if it had been known at the time: what was earned since counts.
 * The same holds of a context that a living process ends, for what could not be timed before. */
#include "compute/compute.h"

uint64_t vg_unsettled_mark(int row, uint64_t start)
{
    const struct vg_slot *slot = vg_slot_now();
    uint64_t charged =
        slot ? atomic_load_explicit(&slot->device[row].charged_ns, memory_order_relaxed) : 0;
    uint64_t mark = start - charged;
    return mark ? mark : 1;
}

void vg_unsettled_since(int row, uint64_t mark, bool replaces)
{
    struct vg_slot *slot = vg_slot_now();
    if (!slot)
        return;
    uint64_t known = atomic_load_explicit(&slot->unsettled[row], memory_order_relaxed);
    if (known != mark && (replaces || !known))
        atomic_store(&slot->unsettled[row], mark);
}

bool vg_has_unsettled(const struct vg_slot *slot)
{
    for (int row = 0; row < VG_DEVICES; row++)
        if (atomic_load_explicit(&slot->unsettled[row], memory_order_relaxed))
            return true;
    return false;
}

void vg_leave_unsettled(const struct vg_slot *slot, int row, uint64_t mark)
{
    uint64_t now = vg_now_ns(), most = VG_LEFT_MOST_NS;
    int64_t used = (int64_t)(now - mark - atomic_load(&slot->device[row].charged_ns));
    if (!mark || used <= 0)
        return;
    struct vg_bucket *bucket = &vg_counters->bucket[row];
    atomic_store(&bucket->left_at_ns, now);
    atomic_fetch_add(&bucket->left_ns, (uint64_t)used < most ? (uint64_t)used : most);
}

void vg_left_behind(struct vg_slot *slot)
{
    for (int row = 0; row < VG_DEVICES; row++)
        vg_leave_unsettled(slot, row, atomic_exchange(&slot->unsettled[row], 0));
}

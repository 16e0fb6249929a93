/* Page-locked host memory: counted per process, and limited where the node sets a limit.
 *
 * One word per slot is both announcement and holding: add, sum over all slots, and take back where
 * the sum exceeds the limit. The argument of container_ledger.c holds for it. Two that meet at the
 * limit may both be refused; host memory is asked for rarely enough. */
#include "ledger/ledger.h"

static uint64_t host_used(void)
{
    uint64_t sum = 0, used = atomic_load(&vg_counters->slots_used);
    for (uint64_t i = 0; i < used && i < VG_SLOTS; i++)
        if (__builtin_add_overflow(sum, atomic_load(&vg_counters->slot[i].host_bytes), &sum))
            return UINT64_MAX;
    return sum;
}

void vg_host_release(uint64_t bytes)
{
    struct vg_slot *mine = vg_slot();
    if (!mine)
        return;
    uint64_t now = atomic_load(&mine->host_bytes);
    while (!atomic_compare_exchange_weak(&mine->host_bytes, &now, now > bytes ? now - bytes : 0))
        ;
}

bool vg_host_reserve(uint64_t bytes)
{
    struct vg_slot *mine = vg_slot();
    if (!mine)
        return true;
    uint64_t limit = __atomic_load_n(&vg_limits->host_limit, __ATOMIC_SEQ_CST);
    if (limit && bytes > limit)
        return false;
    atomic_fetch_add(&mine->host_bytes, bytes);
    if (!limit || host_used() <= limit || (vg_reap() && host_used() <= limit))
        return true;
    vg_host_release(bytes);
    return false;
}

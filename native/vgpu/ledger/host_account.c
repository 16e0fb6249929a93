/* Memory of the host: page-locked, counted per process and limited where the node sets a limit; and
 * beyond the slice of a GPU, limited always.
 *
 * One word per slot is both announcement and holding: add, sum over all slots, and take back where
 * the sum exceeds the limit. The argument of container_ledger.c holds for it. Two that meet at the
 * limit may both be refused; host memory is asked for rarely enough. */
#include "ledger/ledger.h"

static _Atomic uint64_t *locked(struct vg_slot *slot, int row)
{
    (void)row;
    return &slot->host_bytes;
}

static _Atomic uint64_t *swapped(struct vg_slot *slot, int row)
{
    return &slot->swapped[row];
}

typedef _Atomic uint64_t *(*word)(struct vg_slot *, int row);

static uint64_t used(word of, int row)
{
    uint64_t sum = 0, slots = atomic_load(&vg_counters->slots_used);
    for (uint64_t i = 0; i < slots && i < VG_SLOTS; i++)
        if (__builtin_add_overflow(sum, atomic_load(of(&vg_counters->slot[i], row)), &sum))
            return UINT64_MAX;
    return sum;
}

static void release(word of, int row, uint64_t bytes)
{
    struct vg_slot *mine = vg_slot();
    if (!mine)
        return;
    uint64_t now = atomic_load(of(mine, row));
    while (!atomic_compare_exchange_weak(of(mine, row), &now, now > bytes ? now - bytes : 0))
        ;
}

static bool reserve(word of, int row, uint64_t bytes, uint64_t limit)
{
    struct vg_slot *mine = vg_slot();
    if (!mine)
        return true;
    if (limit && bytes > limit)
        return false;
    atomic_fetch_add(of(mine, row), bytes);
    if (!limit || used(of, row) <= limit || (vg_reap() && used(of, row) <= limit))
        return true;
    release(of, row, bytes);
    return false;
}

void vg_host_release(uint64_t bytes)
{
    release(locked, 0, bytes);
}

bool vg_host_reserve(uint64_t bytes)
{
    return reserve(locked, 0, bytes,
                   vg_limits ? __atomic_load_n(&vg_limits->host_limit, __ATOMIC_SEQ_CST) : 0);
}

uint64_t vg_swap_limit(int row)
{
    return row >= 0 && vg_limits
               ? __atomic_load_n(&vg_limits->device[row].swap_limit, __ATOMIC_SEQ_CST)
               : 0;
}

void vg_swap_release(int row, uint64_t bytes)
{
    release(swapped, row, bytes);
}

bool vg_swap_reserve(int row, uint64_t bytes)
{
    uint64_t limit = vg_swap_limit(row);
    return limit && reserve(swapped, row, bytes, limit);
}

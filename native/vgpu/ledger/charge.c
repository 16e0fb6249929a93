/* One allocation on its way: reserved before the driver is asked, settled by its answer,
 * counted. */
#include "counting/call_counts.h"
#include "ledger/ledger.h"
#include "pools/pools.h"

bool vg_charge_try(struct vg_charge *charge, int row, uint64_t asked, uint64_t bytes,
                   enum vg_class cls)
{
    *charge = (struct vg_charge){.row = row};
    if (row < 0)
        return true;
    vg_pending_frees_settle();
    charge->cls = cls;
    charge->begun = vg_count_begin();
    charge->asked = asked;
    if (!vg_reserve_or_not(row, bytes)) {
        vg_count_end(cls, charge->begun, 0);
        return false;
    }
    charge->reserved = bytes;
    return true;
}

bool vg_charge_begin(struct vg_charge *charge, int row, uint64_t asked, uint64_t bytes,
                     enum vg_class cls)
{
    if (vg_charge_try(charge, row, asked, bytes, cls))
        return true;
    vg_refused(row);
    return false;
}

bool vg_charge_more(struct vg_charge *charge, uint64_t actual)
{
    if (actual <= charge->reserved)
        return true;
    if (!vg_reserve(charge->row, actual - charge->reserved))
        return false;
    charge->reserved = actual;
    return true;
}

void vg_charge_end(struct vg_charge *charge, uint64_t actual)
{
    if (charge->row < 0)
        return;
    vg_settle(charge->row, charge->reserved, actual);
    vg_count_end(charge->cls, charge->begun, actual ? charge->asked : 0);
}

/* A forked child holds nothing of its parent's GPU memory, and no lock of its parent's threads. */
#include "ledger/memory.h"

void vg_memory_forked(void)
{
    vg_book_forked();
    vg_blocks_forked();
    vg_pools_forked();
    vg_later_forked();
    vg_contexts_forked();
    vg_vmm_forked();
}

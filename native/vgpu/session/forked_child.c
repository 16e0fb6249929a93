/* A forked child is another process: it has no slot, no context and no claim on its parent's bytes.
 * It gets a slot when it first uses CUDA (a DataLoader worker never does). */
#include <stddef.h>

#include "compute/compute.h"
#include "ledger/ledger.h"
#include "memory/memory.h"
#include "pools/pools.h"
#include "session/session.h"
#include "virtual_memory/virtual_memory.h"

/* What pthread_atfork calls. That name is in libpthread or in libc, by release and processor; this one
 * is in every libc.so.6, so that the library needs no other. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
extern void *__dso_handle __attribute__((visibility("hidden")));

static void in_child(void)
{
    vg_session_forked();
    vg_slot_forked();
    vg_current_gpu_forked();
    vg_granted_gpus_forked();
    vg_compute_forked();
    vg_records_forked();
    vg_blocks_forked();
    vg_pools_forked();
    vg_pending_frees_forked();
    vg_context_limits_forked();
    vg_primaries_forked();
    vg_swap_forked();
    vg_virtual_memory_forked();
}

__attribute__((constructor)) static void at_load(void)
{
    __register_atfork(NULL, NULL, in_child, __dso_handle);
}

/* A forked child is another process: it has no slot, no context and no claim on its parent's bytes.
 * It gets a slot when it first uses CUDA (a DataLoader worker never does). */
#include <pthread.h>

#include "vgpu.h"

static void in_child(void)
{
    vg_session_forked();
    vg_slot_forked();
    vg_context_forked();
    vg_compute_forked();
    vg_memory_forked();
}

__attribute__((constructor)) static void at_load(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

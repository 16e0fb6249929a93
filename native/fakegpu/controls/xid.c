/* fakegpu_xid: the fake's kernel module reports an error of a GPU. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "state/state.h"

__attribute__((visibility("default"))) int fakegpu_xid(int gpu, unsigned xid)
{
    if (!fg_attach() || gpu < 0 || gpu >= fg_state->gpus)
        return -EINVAL;
    struct fg_xid_log *log = &fg_state->xid;
    fg_lock();
    uint32_t written = atomic_load(&log->written);
    log->entry[written % FG_XIDS].gpu = gpu;
    log->entry[written % FG_XIDS].xid = xid;
    if (xid == 79) /* the GPU has fallen off the bus */
        fg_state->gpu[gpu].lost = 1;
    atomic_store(&log->written, written + 1);
    fg_unlock();
    syscall(SYS_futex, &log->written, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return 0;
}

/* Which processes hold memory that several may hold, and its end with the last of them. With the
 * lock held. */
#define _GNU_SOURCE
#include "state/holders.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "state/ledger.h"

struct fg_holder *fg_holder_of(struct fg_shared *shared, int process)
{
    for (int i = 0; i < FG_HOLDERS; i++)
        if (shared->holder[i].count && shared->holder[i].process == process)
            return &shared->holder[i];
    return NULL;
}

void fg_shared_export_path(uint64_t id, char *path, size_t size)
{
    snprintf(path, size, "%s.export.%llu", fg_state->path, (unsigned long long)id);
}

void fg_shared_end_if_unheld(struct fg_shared *shared)
{
    for (int i = 0; i < FG_HOLDERS; i++)
        if (shared->holder[i].count)
            return;
    if (shared->exported) {
        char path[FG_PATH + 64];
        fg_shared_export_path(shared->id, path, sizeof path);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
        bool held = fd >= 0 && !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
        if (fd >= 0)
            close(fd);
        if (held)
            return;
        unlink(path);
    }
    int gpu = shared->gpu;
    shared->gpu = -1;
    fg_state->tag[shared->tag].used[gpu] -= shared->bytes;
    fg_state->gpu[gpu].used -= shared->bytes;
}

void fg_shared_sweep(void)
{
    for (int i = 0; i < fg_state->shareds; i++)
        if (fg_state->shared[i].gpu >= 0)
            fg_shared_end_if_unheld(&fg_state->shared[i]);
}

void fg_shared_drop_process(int process)
{
    for (int i = 0; i < fg_state->shareds; i++) {
        struct fg_shared *shared = &fg_state->shared[i];
        struct fg_holder *holder = shared->gpu < 0 ? NULL : fg_holder_of(shared, process);
        if (holder) {
            holder->count = 0;
            fg_shared_end_if_unheld(shared);
        }
    }
}

/* Exports as files beside the state, named by the number of the shared memory. The descriptor
 * holds a lock of its open file description: it lives until the last copy of the descriptor is
 * closed. */
#define _GNU_SOURCE
#include "sharing/export_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include "state/ledger.h"

int fg_export_make(const struct fg_export *text)
{
    char path[FG_PATH + 64];
    fg_shared_export_path(text->id, path, sizeof path);
    if (text->shared >= 0) /* first: a death after it leaves no file behind */
        fg_shared_exported(text->shared, text->id);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    if (fd < 0)
        return -1;
    if (pwrite(fd, text, sizeof *text, 0) != sizeof *text || fcntl(fd, F_OFD_SETLK, &lock)) {
        close(fd);
        return -1;
    }
    return fd;
}

bool fg_export_read(int fd, enum fg_export_kind kind, struct fg_export *text)
{
    return pread(fd, text, sizeof *text, 0) == sizeof *text && text->kind == kind;
}

/* Finds and maps the container's two pages; believes nothing in them.
 *
 * The folder is VG_FOLDER wherever that exists, whatever the environment says; ALNAIR_VGPU_DIR is
 * for tests on machines without it. A folder without a valid `limits` is a failure, not freedom; so
 * is no folder at all for a copy of the library that must limit (mark.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "session/session.h"

static struct vg_outcome failed(const char *what, const char *why)
{
    struct vg_outcome outcome = {.kind = VG_FAILED};
    snprintf(outcome.text, sizeof outcome.text, "%s: %s", what, why);
    return outcome;
}

const char *vg_folder(void)
{
    if (vg_must_limit() || !access(VG_FOLDER, F_OK) || (errno != ENOENT && errno != ENOTDIR))
        return VG_FOLDER;
    const char *folder = secure_getenv("ALNAIR_VGPU_DIR");
    return folder && *folder ? folder : NULL;
}

int vg_open_page(const char *name, int flags)
{
    char path[256];
    const char *folder = vg_folder();
    if (!folder || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        errno = ENOENT;
        return -1;
    }
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW);
}

/* The descriptor is closed again: the application's numbers stay its own. */
static struct vg_outcome map(const char *name, size_t size, bool exact, bool writable, void **page)
{
    int fd = vg_open_page(name, writable ? O_RDWR : O_RDONLY);
    if (fd < 0) {
        struct vg_outcome outcome = failed(name, strerror(errno));
        if (errno == EMFILE || errno == ENFILE || errno == EINTR)
            outcome.kind = VG_AGAIN; /* the application is out of descriptors now, not for ever */
        return outcome;
    }
    off_t length = lseek(fd, 0, SEEK_END);
    struct vg_outcome outcome = {.kind = VG_DONE};
    if (length < (off_t)size || (exact && length != (off_t)size))
        outcome = failed(name, "it has a wrong size");
    else {
        *page = mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
        if (*page == MAP_FAILED)
            outcome = failed(name, strerror(errno));
    }
    close(fd);
    return outcome;
}

static const char *wrong_limits(const struct vg_limits *limits)
{
    if (limits->magic != VG_LIMITS_MAGIC)
        return "it is not a limits page";
    if (limits->abi != VG_ABI)
        return "it is of another version of Alnair";
    if (limits->n_devices > VG_DEVICES)
        return "it names more GPUs than fit";
    for (uint32_t i = 0; i < limits->n_devices; i++)
        if (limits->device[i].compute_percent > 100)
            return "it has a compute limit above 100 percent";
    return NULL;
}

struct vg_outcome vg_map_limits(const struct vg_limits **limits)
{
    if (!vg_folder())
        return (struct vg_outcome){.kind = VG_NONE};
    void *page = NULL;
    struct vg_outcome outcome = map("limits", sizeof(struct vg_limits), false, false, &page);
    if (outcome.kind != VG_DONE)
        return outcome;
    const char *wrong = wrong_limits(page);
    if (wrong) {
        munmap(page, sizeof(struct vg_limits));
        return failed("limits", wrong);
    }
    *limits = page;
    return outcome;
}

struct vg_outcome vg_map_counters(const struct vg_limits *limits, struct vg_counters **counters)
{
    void *page = NULL;
    struct vg_outcome outcome = map("counters", sizeof(struct vg_counters), true, true, &page);
    if (outcome.kind != VG_DONE)
        return outcome;
    const struct vg_counters *found = page;
    const char *wrong =
        found->magic != VG_COUNTERS_MAGIC                    ? "it is not a counters file"
        : found->abi != VG_ABI || found->n_slots != VG_SLOTS ? "it is of another version of Alnair"
        : found->generation != limits->generation            ? "it is not the one that limits names"
                                                             : NULL;
    if (wrong) {
        munmap(page, sizeof(struct vg_counters));
        return failed("counters", wrong);
    }
    *counters = page;
    return outcome;
}

/* Descriptors of exported physical memory: each holds it as long as any copy of it is open.
 *
 * While another reference is recorded they do not matter. When the last one goes, the descriptors
 * of this process that still name the object they were made as (device and inode) keep its bytes
 * charged, as one EXPORTED record. They are looked at again before a refusal, at synchronisations,
 * and when memory is asked for by cuMemGetInfo. A number that the program gave to another object
 * counts as closed; one of the same inode does not, and errs on the safe side of the limit.
 *
 * A descriptor that was passed on or duplicated, and closed here, cannot be seen: what others hold
 * then is found by NVML, and comes back as overhead. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "virtual_memory/virtual_memory.h"

struct export {
    struct export *next;
    uint64_t serial; /* of its memory */
    dev_t device;
    ino_t inode;
    int fd;
    bool alone; /* it holds an EXPORTED record */
};

/* No call of the driver is made under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct export *exports; /* one for each number of a descriptor, at most */
static _Atomic unsigned int n_alone;

static bool file_status(int fd, struct stat *now) /* libc's symbol changed in glibc 2.33 */
{
    return !syscall(SYS_fstat, fd, now);
}

static bool is_open(const struct export *one)
{
    struct stat now;
    return file_status(one->fd, &now) && now.st_dev == one->device && now.st_ino == one->inode;
}

/* Takes *at out of the list; true: it was the last that held its memory, which is credited. */
static bool close_export(struct export **at)
{
    struct export *one = *at;
    struct vg_record record;
    bool last = one->alone && vg_record_count(VG_KIND_EXPORTED, one->serial, 0, -1, &record) == 0;
    if (last)
        vg_physical_credit(&record);
    if (one->alone)
        atomic_fetch_sub(&n_alone, 1);
    *at = one->next;
    free(one);
    return last;
}

void vg_export_made(int fd, uint64_t serial)
{
    struct stat now;
    struct export *one = malloc(sizeof *one);
    if (!one || !file_status(fd, &now)) {
        free(one);
        return;
    }
    pthread_mutex_lock(&lock);
    struct export **at = &exports;
    while (*at && (*at)->fd != fd)
        at = &(*at)->next;
    if (*at) /* the driver got this number: its former bearer is closed */
        close_export(at);
    *one = (struct export){exports, serial, now.st_dev, now.st_ino, fd, false};
    exports = one;
    pthread_mutex_unlock(&lock);
}

bool vg_export_holds(const struct vg_record *record)
{
    struct vg_record held = *record;
    held.kind = VG_KIND_EXPORTED;
    held.key = record->serial;
    held.count = 0;
    pthread_mutex_lock(&lock);
    for (struct export **at = &exports; *at;) {
        struct export *one = *at;
        if (one->alone || one->serial != record->serial) {
            at = &one->next;
        } else if (!is_open(one)) {
            close_export(at);
        } else {
            one->alone = true;
            held.count++;
            at = &one->next;
        }
    }
    atomic_fetch_add(&n_alone, held.count);
    if (held.count)
        vg_record_put(&held);
    pthread_mutex_unlock(&lock);
    return held.count;
}

void vg_export_back(int fd, uint64_t handle)
{
    struct vg_record record;
    pthread_mutex_lock(&lock);
    struct export *found = exports;
    while (found && !(found->fd == fd && found->alone && is_open(found)))
        found = found->next;
    if (found && vg_record_take(VG_KIND_EXPORTED, found->serial, &record)) {
        for (struct export *one = exports; one; one = one->next)
            if (one->alone && one->serial == record.serial) {
                one->alone = false;
                atomic_fetch_sub(&n_alone, 1);
            }
        record.kind = VG_KIND_PHYSICAL;
        record.key = handle;
        record.count = 1;
        vg_record_put(&record);
    }
    pthread_mutex_unlock(&lock);
}

bool vg_exports_settle(void)
{
    bool any = false;
    if (likely(!atomic_load_explicit(&n_alone, memory_order_relaxed)))
        return false;
    pthread_mutex_lock(&lock);
    for (struct export **at = &exports; *at;)
        if ((*at)->alone && !is_open(*at))
            any |= close_export(at);
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&lock);
    return any;
}

void vg_exports_forked(void) /* the child's descriptors hold its parent's memory */
{
    pthread_mutex_init(&lock, NULL);
    atomic_store(&n_alone, 0);
    while (exports) {
        struct export *one = exports;
        exports = one->next;
        free(one);
    }
}

/* ---- hooks ----------------------------------------------------------------------------------- */

VG_EXPORT CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
                                                CUmemAllocationHandleType type,
                                                unsigned long long flags)
{
    VG_ENTER();
    struct vg_record record;
    vg_references_begin();
    CUresult result = REAL(cuMemExportToShareableHandle)(shared, handle, type, flags);
    if (result == CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
        vg_record_get(VG_KIND_PHYSICAL, handle, &record))
        vg_export_made(*(int *)shared, record.serial);
    vg_references_end();
    return result;
}

/* What this process exported comes back as the same handle, with one more reference. */
VG_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                  void *shared, CUmemAllocationHandleType type)
{
    VG_ENTER();
    struct vg_record record;
    vg_references_begin();
    CUresult result = REAL(cuMemImportFromShareableHandle)(handle, shared, type);
    if (result == CUDA_SUCCESS && vg_record_count(VG_KIND_PHYSICAL, *handle, 0, 1, &record) < 0 &&
        type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        vg_export_back((int)(intptr_t)shared, *handle);
    vg_references_end();
    return result;
}

/* NVML: memory of a GPU, and the limits that a driver since release 615 sets per cgroup (tier A).
 *
 * A "cgroup" of the fake is a tag: the last part of the path that the caller names. The path
 * must be there, as for the driver; the limit is enforced where memory is charged
 * (state/ledger.c), for whatever program has that tag. Only the leaf is modelled: a limit on a
 * parent says nothing of its children.
 *   hard limit  what exceeds it is out of memory
 * soft limit  guaranteed; beyond it a tag borrows what is free. It refuses nothing here, for the
 * fake
 *               evicts no borrower as the MPS server of that release does
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvml/nvml_entry.h"

#define GPU (&fg_state->gpu[gpu])

static uint64_t reserved(int gpu)
{
    return nv_profile(gpu)->nvml_bytes - nv_profile(gpu)->memory_bytes;
}

/* What all tags use, dead processes' memory released first; the hard limit and use of our own
 * tag. */
static uint64_t used(int gpu, uint64_t *limit, uint64_t *own)
{
    int tag = nv_tag();
    fg_lock();
    fg_sweep_dead();
    uint64_t all = GPU->used;
    *limit = tag < 0 ? 0 : fg_state->tag[tag].hard_limit[gpu];
    *own = tag < 0 ? 0 : fg_tag_limited_bytes(gpu, &fg_state->tag[tag]);
    fg_unlock();
    return all;
}

/* Whether it is a MIG device, whose memory is that of its GPU instance. */
static bool of_mig(nvmlDevice_t device, unsigned long long *total, unsigned long long *held)
{
    int gpu;
    struct fg_mig mig;
    if (!nv_mig_of(device, &gpu, &mig))
        return false;
    fg_lock();
    fg_sweep_dead();
    *total = mig.memory_bytes;
    *held = fg_mig_used(gpu, mig.gi);
    fg_unlock();
    return true;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    NV_ENTER(nvmlDeviceGetMemoryInfo);
    unsigned long long total, held;
    if (memory && of_mig(device, &total, &held)) {
        *memory = (nvmlMemory_t){.total = total, .used = held, .free = total - held};
        return NVML_SUCCESS;
    }
    NV_GPU(gpu, device);
    NV_NEEDS(memory);
    uint64_t limit, own, all = used(gpu, &limit, &own);
    /* The old call has no field for what the driver keeps, and counts it as used. */
    memory->total = nv_profile(gpu)->nvml_bytes;
    memory->used = all + reserved(gpu);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    NV_ENTER(nvmlDeviceGetMemoryInfo_v2);
    NV_NEEDS(memory);
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (of_mig(device, &memory->total, &memory->used)) {
        memory->reserved = 0;
        memory->free = memory->total - memory->used;
        return NVML_SUCCESS;
    }
    NV_GPU(gpu, device);
    uint64_t limit, own, all = used(gpu, &limit, &own);
    memory->total = nv_profile(gpu)->nvml_bytes;
    memory->reserved = reserved(gpu);
    memory->used = all;
    if (limit) { /* inside a limited cgroup the limit is the GPU */
        memory->total = limit;
        memory->reserved = 0;
        memory->used = own;
    }
    uint64_t taken = memory->reserved + memory->used, room = nv_profile(gpu)->memory_bytes - all;
    memory->free = taken < memory->total ? memory->total - taken : 0;
    if (memory->free > room) /* others may hold what the limit would allow */
        memory->free = room;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *bar)
{
    NV_ENTER(nvmlDeviceGetBAR1MemoryInfo);
    NV_GPU(gpu, device);
    NV_NEEDS(bar);
    bar->bar1Total = nv_profile(gpu)->bar1_bytes;
    bar->bar1Used = 2u << 20;
    bar->bar1Free = bar->bar1Total - bar->bar1Used;
    return NVML_SUCCESS;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static nvmlReturn_t supported(int gpu)
{
    if (nv_release() < 615)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    return NV_FAULT("nvml_limits_off") || GPU->mig_mode ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

/* The tag that a cgroup's path means, in `tag`; made if `make`. */
static nvmlReturn_t tag_of(const char *path, bool make, int *tag)
{
    struct stat status;
    if (stat(path, &status) || !S_ISDIR(status.st_mode))
        return NVML_ERROR_OPERATING_SYSTEM;
    char name[32] = "";
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin && path[begin - 1] != '/')
        begin--;
    if (begin == end || end - begin >= sizeof name)
        return NVML_ERROR_OPERATING_SYSTEM;
    memcpy(name, path + begin, end - begin);
    fg_lock();
    *tag = fg_find_tag(name, make);
    fg_unlock();
    return *tag < 0 && make ? NVML_ERROR_INSUFFICIENT_RESOURCES : NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t device,
                                                    nvmlSetMemoryLimits_v1_t *limits)
{
    NV_ENTER(nvmlDeviceSetMemoryLimits_v1);
    NV_GPU(gpu, device);
    nvmlReturn_t result = supported(gpu);
    if (result != NVML_SUCCESS)
        return result;
    NV_NEEDS(limits && limits->nameSpace);
    if (geteuid())
        return NVML_ERROR_NO_PERMISSION;
    uint64_t total = nv_profile(gpu)->nvml_bytes, soft = limits->softLimit,
             hard = limits->hardLimit;
    NV_NEEDS(soft <= hard && soft <= total &&
             (hard <= total || hard == NVML_DEVICE_MEMORY_LIMIT_MAX));
    int tag;
    result = tag_of(limits->nameSpace, true, &tag);
    if (result != NVML_SUCCESS)
        return result;
    fg_lock();
    /* A limit of 0 bytes is a limit; in the state 0 means none. */
    fg_state->tag[tag].hard_limit[gpu] = hard == NVML_DEVICE_MEMORY_LIMIT_MAX ? 0 : hard ? hard : 1;
    fg_state->tag[tag].soft_limit[gpu] = soft;
    fg_unlock();
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device,
                                                    nvmlGetMemoryLimits_v1_t *limits)
{
    NV_ENTER(nvmlDeviceGetMemoryLimits_v1);
    NV_GPU(gpu, device);
    nvmlReturn_t result = supported(gpu);
    if (result != NVML_SUCCESS)
        return result;
    NV_NEEDS(limits && limits->nameSpace);
    int tag;
    result = tag_of(limits->nameSpace, false, &tag);
    if (result != NVML_SUCCESS)
        return result;
    if (tag < 0)
        return NVML_ERROR_NOT_FOUND;
    fg_lock();
    fg_sweep_dead();
    const struct fg_tag *its = &fg_state->tag[tag];
    uint64_t hard = its->hard_limit[gpu];
    limits->softLimit = its->soft_limit[gpu];
    limits->hardLimit = hard == 0 ? NVML_DEVICE_MEMORY_LIMIT_MAX : hard == 1 ? 0 : hard;
    limits->currentUsed = fg_tag_limited_bytes(gpu, its);
    fg_unlock();
    return limits->softLimit || hard ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* NVML: event sets. Only XID errors happen here; the other types may be registered and stay silent.
 * A wait sleeps in wall time, also where the GPUs' clock is virtual: who watches does not take
 * part. */
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nvml/nvml_entry.h"

#define MAGIC 0x6e764576u
#define SUPPORTED                                                                                  \
    (nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError |                             \
     nvmlEventTypeXidCriticalError)

struct nvmlEventSet_st {
    unsigned magic;
    _Atomic uint32_t read;             /* events of the log seen so far */
    unsigned long long types[FG_GPUS]; /* registered, by GPU */
};

NV_EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *out)
{
    NV_ENTER(nvmlEventSetCreate);
    NV_NEEDS(out);
    struct nvmlEventSet_st *set = calloc(1, sizeof *set);
    if (!set)
        return NVML_ERROR_MEMORY;
    set->magic = MAGIC;
    set->read = fg_state->xid.written;
    *out = set;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    NV_ENTER(nvmlEventSetFree);
    NV_NEEDS(set && set->magic == MAGIC);
    set->magic = 0;
    free(set);
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device,
                                                        unsigned long long *types)
{
    NV_ENTER(nvmlDeviceGetSupportedEventTypes);
    NV_GPU(gpu, device);
    (void)gpu;
    NV_NEEDS(types);
    *types = SUPPORTED;
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                                nvmlEventSet_t set)
{
    NV_ENTER(nvmlDeviceRegisterEvents);
    NV_GPU(gpu, device);
    NV_NEEDS(set && set->magic == MAGIC);
    if (types & ~(unsigned long long)SUPPORTED)
        return NVML_ERROR_NOT_SUPPORTED;
    set->types[gpu] |= types;
    return NVML_SUCCESS;
}

/* The next event that this set listens for; false: none yet. */
static bool next(struct nvmlEventSet_st *set, nvmlEventData_t *data)
{
    const struct fg_xid_log *log = &fg_state->xid;
    uint32_t written = atomic_load(&log->written);
    if (written - set->read > FG_XIDS)
        set->read = written - FG_XIDS;
    while (set->read != written) {
        uint32_t at = atomic_fetch_add(&set->read, 1) % FG_XIDS;
        int gpu = log->entry[at].gpu;
        if (!(set->types[gpu] & nvmlEventTypeXidCriticalError))
            continue;
        *data = (nvmlEventData_t){.device = nv_device_of(gpu),
                                  .eventType = nvmlEventTypeXidCriticalError,
                                  .eventData = log->entry[at].xid,
                                  .gpuInstanceId = 0xffffffffu,
                                  .computeInstanceId = 0xffffffffu};
        return true;
    }
    return false;
}

static nvmlReturn_t wait_for(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    NV_NEEDS(set && set->magic == MAGIC && data);
    struct timespec end, now, left;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout_ms / 1000;
    end.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    for (;;) {
        if (next(set, data))
            return NVML_SUCCESS;
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t ns = (int64_t)(end.tv_sec - now.tv_sec) * 1000000000 + end.tv_nsec - now.tv_nsec;
        if (ns <= 0)
            return NVML_ERROR_TIMEOUT;
        left.tv_sec = ns / 1000000000;
        left.tv_nsec = ns % 1000000000;
        syscall(SYS_futex, &fg_state->xid.written, FUTEX_WAIT, set->read, &left, NULL, 0);
    }
}

NV_EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data,
                                        unsigned int timeout_ms)
{
    NV_ENTER(nvmlEventSetWait);
    return wait_for(set, data, timeout_ms);
}

NV_EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data,
                                           unsigned int timeout_ms)
{
    NV_ENTER(nvmlEventSetWait_v2);
    return wait_for(set, data, timeout_ms);
}

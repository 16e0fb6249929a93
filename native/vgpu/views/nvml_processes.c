/* What NVML tells in a container of processes: those of the container. */
#include "views/views.h"

/* Declared ourselves: see views.h. */
struct nvml_process {
    unsigned int pid;
    unsigned long long bytes;
};
struct nvml_process_v2 {
    unsigned int pid;
    unsigned long long bytes;
    unsigned int gpu_instance, compute_instance;
};
struct nvml_sample {
    unsigned int pid;
    unsigned long long time;
    unsigned int sm, memory, encoder, decoder;
};
struct nvml_use {
    unsigned long long time;
    unsigned int pid, sm, memory, encoder, decoder, jpeg, ofa;
};
struct nvml_uses {
    unsigned int version, n;
    unsigned long long since;
    struct nvml_use *use;
};

static uint64_t slots_used(void)
{
    uint64_t used = atomic_load(&vg_counters->slots_used);
    return used < VG_SLOTS ? used : VG_SLOTS;
}

/* Fills `put` with the container's processes on this GPU, in NVML's protocol of counts. */
static int list_processes(int row, unsigned int *count, void *list,
                          void (*put)(void *list, unsigned int i, uint64_t pid, uint64_t bytes))
{
    unsigned int found = 0, room = list ? *count : 0;
    for (uint64_t i = 0; i < slots_used(); i++) {
        struct vg_slot *slot = &vg_counters->slot[i];
        uint64_t pid = atomic_load(&slot->owner), bytes = atomic_load(&slot->device[row].held);
        if (!pid || !bytes)
            continue;
        if (found < room)
            put(list, found, pid, bytes);
        found++;
    }
    *count = found;
    return found <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

static void put_v1(void *list, unsigned int i, uint64_t pid, uint64_t bytes)
{
    ((struct nvml_process *)list)[i] = (struct nvml_process){(unsigned int)pid, bytes};
}

static void put_v2(void *list, unsigned int i, uint64_t pid, uint64_t bytes)
{
    ((struct nvml_process_v2 *)list)[i] =
        (struct nvml_process_v2){(unsigned int)pid, bytes, ~0u, ~0u};
}

#define LIST(name, type, put)                                                                      \
    VG_EXPORT int name(nvmlDevice_t device, unsigned int *count, type *list)                       \
    {                                                                                              \
        VG_ENTER_NVML();                                                                           \
        if (!REAL(name))                                                                           \
            return NVML_ERROR_FUNCTION_NOT_FOUND;                                                  \
        int row = count ? vg_nvml_row(device) : -1;                                                \
        return row < 0 ? REAL(name)(device, count, list) : list_processes(row, count, list, put);  \
    }
#define EMPTY(name, type)                                                                          \
    VG_EXPORT int name(nvmlDevice_t device, unsigned int *count, type *list)                       \
    {                                                                                              \
        VG_ENTER_NVML();                                                                           \
        if (!REAL(name))                                                                           \
            return NVML_ERROR_FUNCTION_NOT_FOUND;                                                  \
        if (!count || vg_nvml_row(device) < 0)                                                     \
            return REAL(name)(device, count, list);                                                \
        *count = 0;                                                                                \
        return NVML_SUCCESS;                                                                       \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, struct nvml_process, put_v1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, struct nvml_process_v2, put_v2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, struct nvml_process_v2, put_v2)
/* Under MPS the driver lists clients here; ours are in the lists above, however they run. */
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses, struct nvml_process)
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses_v2, struct nvml_process_v2)
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses_v3, struct nvml_process_v2)
EMPTY(nvmlDeviceGetGraphicsRunningProcesses, struct nvml_process)
EMPTY(nvmlDeviceGetGraphicsRunningProcesses_v2, struct nvml_process_v2)
EMPTY(nvmlDeviceGetGraphicsRunningProcesses_v3, struct nvml_process_v2)

/* ---- utilisation by process: only those of this container ------------------------------------ */

static bool is_of_container(unsigned int pid)
{
    for (uint64_t i = 0; i < slots_used(); i++)
        if (atomic_load(&vg_counters->slot[i].owner) == pid)
            return true;
    return false;
}

VG_EXPORT int nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct nvml_sample *sample,
                                              unsigned int *count, unsigned long long since)
{
    VG_ENTER_NVML();
    if (!REAL(nvmlDeviceGetProcessUtilization))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    int result = REAL(nvmlDeviceGetProcessUtilization)(device, sample, count, since);
    if (result != NVML_SUCCESS || !sample || vg_nvml_row(device) < 0)
        return result;
    unsigned int kept = 0;
    for (unsigned int i = 0; i < *count; i++)
        if (is_of_container(sample[i].pid))
            sample[kept++] = sample[i];
    *count = kept;
    return result;
}

VG_EXPORT int nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, struct nvml_uses *uses)
{
    VG_ENTER_NVML();
    if (!REAL(nvmlDeviceGetProcessesUtilizationInfo))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    int result = REAL(nvmlDeviceGetProcessesUtilizationInfo)(device, uses);
    if (result != NVML_SUCCESS || !uses->use || vg_nvml_row(device) < 0)
        return result;
    unsigned int kept = 0;
    for (unsigned int i = 0; i < uses->n; i++)
        if (is_of_container(uses->use[i].pid))
            uses->use[kept++] = uses->use[i];
    uses->n = kept;
    return result;
}

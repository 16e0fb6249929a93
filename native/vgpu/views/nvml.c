/* What NVML tells in a container: its own memory and its own processes. nvidia-smi and nvidia-ml-py
 * work on it without CUDA, so the pages are mapped here without a registration and without a slot.
 *
 * Not changed, since they speak of the whole GPU and say so: utilisation rates, clocks, BAR1, and the
 * driver's own limits of a cgroup (nvmlDeviceGetMemoryLimits_v1). */
#include <string.h>

#include "ledger/memory.h"

typedef struct nvmlDevice_st *nvmlDevice_t;
enum { NVML_SUCCESS = 0, NVML_ERROR_INVALID_ARGUMENT = 2, NVML_ERROR_FUNCTION_NOT_FOUND = 13, NVML_ERROR_INSUFFICIENT_SIZE = 7 };

/* Declared ourselves, as in cuda_abi.h: facts of the interface, members named by us. */
struct nvml_memory { unsigned long long total, free, used; };
struct nvml_memory_v2 { unsigned int version; unsigned long long total, reserved, free, used; };
struct nvml_process { unsigned int pid; unsigned long long bytes; };
struct nvml_process_v2 { unsigned int pid; unsigned long long bytes; unsigned int gpu_instance, compute_instance; };
struct nvml_sample { unsigned int pid; unsigned long long time; unsigned int sm, memory, encoder, decoder; };
struct nvml_use { unsigned long long time; unsigned int pid, sm, memory, encoder, decoder, jpeg, ofa; };
struct nvml_uses { unsigned int version, n; unsigned long long since; struct nvml_use *use; };

int nvmlDeviceGetUUID(nvmlDevice_t, char *, unsigned int);

static bool vg_hex(const char *text, uint8_t uuid[16]) /* "GPU-" and 32 hexadecimal digits with dashes */
{
    int digits = 0;
    if (strncmp(text, "GPU-", 4))
        return false;
    for (text += 4; *text && digits < 32; text++) {
        int c = *text | 0x20, value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (*text == '-')
            continue;
        if (value < 0)
            return false;
        uuid[digits / 2] = (uint8_t)(digits % 2 ? uuid[digits / 2] | value : value << 4);
        digits++;
    }
    return digits == 32;
}

/* The row of this device; -1: none, or no container. */
static int vg_nvml_row(nvmlDevice_t device)
{
    char text[96] = "";
    uint8_t uuid[16];
    if (!vg_view() || !REAL(nvmlDeviceGetUUID) || REAL(nvmlDeviceGetUUID)(device, text, sizeof text) || !vg_hex(text, uuid))
        return -1;
    for (uint32_t row = 0; row < vg_limits->n_devices && row < VG_DEVICES; row++)
        if (!memcmp(vg_limits->device[row].uuid, uuid, sizeof uuid))
            return (int)row;
    return -1;
}

static uint64_t vg_at_most(uint64_t limit, uint64_t total)
{
    return limit < total ? limit : total;
}

VG_EXPORT int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *memory)
{
    VG_ENTER_NVML();
    if (!REAL(nvmlDeviceGetMemoryInfo))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    int result = REAL(nvmlDeviceGetMemoryInfo)(device, memory);
    uint64_t total, used;
    if (result == NVML_SUCCESS && vg_memory_view(vg_nvml_row(device), &total, &used)) {
        total = vg_at_most(total, memory->total);
        *memory = (struct nvml_memory){total, used < total ? total - used : 0, used};
    }
    return result;
}

VG_EXPORT int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct nvml_memory_v2 *memory)
{
    VG_ENTER_NVML();
    if (!REAL(nvmlDeviceGetMemoryInfo_v2))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    int result = REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory);
    uint64_t total, used;
    if (result == NVML_SUCCESS && vg_memory_view(vg_nvml_row(device), &total, &used)) {
        total = vg_at_most(total, memory->total);
        *memory = (struct nvml_memory_v2){memory->version, total, 0, used < total ? total - used : 0, used};
    }
    return result;
}

/* ---- processes ----------------------------------------------------------------------------------------- */

static uint64_t vg_slots_used(void)
{
    uint64_t used = atomic_load(&vg_counters->slots_used);
    return used < VG_SLOTS ? used : VG_SLOTS;
}

/* Fills `put` with the container's processes on this GPU, in NVML's protocol of counts. */
static int vg_list(int row, unsigned int *count, void *list, void (*put)(void *list, unsigned int i, uint64_t pid, uint64_t bytes))
{
    unsigned int found = 0, room = list ? *count : 0;
    for (uint64_t i = 0; i < vg_slots_used(); i++) {
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

static void vg_put_v1(void *list, unsigned int i, uint64_t pid, uint64_t bytes)
{
    ((struct nvml_process *)list)[i] = (struct nvml_process){(unsigned int)pid, bytes};
}

static void vg_put_v2(void *list, unsigned int i, uint64_t pid, uint64_t bytes)
{
    ((struct nvml_process_v2 *)list)[i] = (struct nvml_process_v2){(unsigned int)pid, bytes, ~0u, ~0u};
}

#define LIST(name, type, put)                                                                                \
    VG_EXPORT int name(nvmlDevice_t device, unsigned int *count, type *list)                                 \
    {                                                                                                        \
        VG_ENTER_NVML();                                                                                     \
        if (!REAL(name))                                                                                     \
            return NVML_ERROR_FUNCTION_NOT_FOUND;                                                            \
        int row = count ? vg_nvml_row(device) : -1;                                                          \
        return row < 0 ? REAL(name)(device, count, list) : vg_list(row, count, list, put);                   \
    }
#define EMPTY(name, type)                                                                                    \
    VG_EXPORT int name(nvmlDevice_t device, unsigned int *count, type *list)                                 \
    {                                                                                                        \
        VG_ENTER_NVML();                                                                                     \
        if (!REAL(name))                                                                                     \
            return NVML_ERROR_FUNCTION_NOT_FOUND;                                                            \
        if (!count || vg_nvml_row(device) < 0)                                                               \
            return REAL(name)(device, count, list);                                                          \
        *count = 0;                                                                                          \
        return NVML_SUCCESS;                                                                                 \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, struct nvml_process, vg_put_v1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, struct nvml_process_v2, vg_put_v2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, struct nvml_process_v2, vg_put_v2)
/* Under MPS the driver lists clients here; ours are in the lists above, however they run. */
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses, struct nvml_process)
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses_v2, struct nvml_process_v2)
EMPTY(nvmlDeviceGetMPSComputeRunningProcesses_v3, struct nvml_process_v2)
EMPTY(nvmlDeviceGetGraphicsRunningProcesses, struct nvml_process)
EMPTY(nvmlDeviceGetGraphicsRunningProcesses_v2, struct nvml_process_v2)
EMPTY(nvmlDeviceGetGraphicsRunningProcesses_v3, struct nvml_process_v2)

/* ---- utilisation by process: only those of this container ------------------------------------------------- */

static bool vg_of_container(unsigned int pid)
{
    for (uint64_t i = 0; i < vg_slots_used(); i++)
        if (atomic_load(&vg_counters->slot[i].owner) == pid)
            return true;
    return false;
}

VG_EXPORT int nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct nvml_sample *sample, unsigned int *count,
                                              unsigned long long since)
{
    VG_ENTER_NVML();
    if (!REAL(nvmlDeviceGetProcessUtilization))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    int result = REAL(nvmlDeviceGetProcessUtilization)(device, sample, count, since);
    if (result != NVML_SUCCESS || !sample || vg_nvml_row(device) < 0)
        return result;
    unsigned int kept = 0;
    for (unsigned int i = 0; i < *count; i++)
        if (vg_of_container(sample[i].pid))
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
        if (vg_of_container(uses->use[i].pid))
            uses->use[kept++] = uses->use[i];
    uses->n = kept;
    return result;
}

/* What NVML tells in a container of memory: its limit and what it holds (nvidia-smi, nvidia-ml-py).
 *
 * Not changed, since they speak of the whole GPU and say so: utilisation rates, clocks, BAR1, and
 * the driver's own limits of a cgroup (nvmlDeviceGetMemoryLimits_v1). */
#include "views/views.h"

/* Declared ourselves: see views.h. */
struct nvml_memory { unsigned long long total, free, used; };
struct nvml_memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

static uint64_t at_most(uint64_t limit, uint64_t total)
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
        total = at_most(total, memory->total);
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
        total = at_most(total, memory->total);
        *memory = (struct nvml_memory_v2){memory->version, total, 0,
                                          used < total ? total - used : 0, used};
    }
    return result;
}

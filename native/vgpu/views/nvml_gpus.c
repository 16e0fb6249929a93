/* Which GPUs NVML shows in a container: those of its limits page, numbered by their rows, as CUDA
 * numbers them (session/granted_gpus.c). A handle of another one is not to be had. */
#include "session/session.h"
#include "views/views.h"

#define MOST_GPUS 64

int nvmlDeviceGetHandleByUUID(const char *, nvmlDevice_t *);

static unsigned int granted(void)
{
    return vg_limits->n_devices < VG_DEVICES ? vg_limits->n_devices : VG_DEVICES;
}

#define COUNT(name)                                                                                \
    VG_EXPORT int name(unsigned int *count)                                                        \
    {                                                                                              \
        VG_ENTER_NVML();                                                                           \
        if (!REAL(name))                                                                           \
            return NVML_ERROR_FUNCTION_NOT_FOUND;                                                  \
        int result = REAL(name)(count);                                                            \
        if (result == NVML_SUCCESS && vg_view())                                                   \
            *count = granted();                                                                    \
        return result;                                                                             \
    }
COUNT(nvmlDeviceGetCount)
COUNT(nvmlDeviceGetCount_v2)

/* By the UUID of the row: an index of the node would have to be looked for, and a GPU that is lost
 * could not be told from one that was not granted. */
#define BY_INDEX(name)                                                                             \
    VG_EXPORT int name(unsigned int index, nvmlDevice_t *device)                                   \
    {                                                                                              \
        VG_ENTER_NVML();                                                                           \
        if (!REAL(name))                                                                           \
            return NVML_ERROR_FUNCTION_NOT_FOUND;                                                  \
        if (!vg_view() || !REAL(nvmlDeviceGetHandleByUUID))                                        \
            return REAL(name)(index, device);                                                      \
        char text[VG_UUID_TEXT];                                                                   \
        if (index >= granted())                                                                    \
            return NVML_ERROR_INVALID_ARGUMENT;                                                    \
        vg_uuid_text(vg_limits->device[index].uuid, text);                                         \
        return REAL(nvmlDeviceGetHandleByUUID)(text, device);                                      \
    }
BY_INDEX(nvmlDeviceGetHandleByIndex)
BY_INDEX(nvmlDeviceGetHandleByIndex_v2)

/* What the driver found, if the container may see it. */
static int found(int result, nvmlDevice_t *device)
{
    if (result != NVML_SUCCESS || !vg_view() || vg_nvml_row(*device) >= 0)
        return result;
    *device = NULL;
    return NVML_ERROR_NOT_FOUND;
}

#define BY_NAME(name, type)                                                                        \
    VG_EXPORT int name(const type *text, nvmlDevice_t *device)                                     \
    {                                                                                              \
        VG_ENTER_NVML();                                                                           \
        return REAL(name) ? found(REAL(name)(text, device), device)                                \
                          : NVML_ERROR_FUNCTION_NOT_FOUND;                                         \
    }
BY_NAME(nvmlDeviceGetHandleByPciBusId, char)
BY_NAME(nvmlDeviceGetHandleByPciBusId_v2, char)
BY_NAME(nvmlDeviceGetHandleBySerial, char)
BY_NAME(nvmlDeviceGetHandleByUUID, char)
BY_NAME(nvmlDeviceGetHandleByUUIDV, void)

VG_EXPORT int nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    VG_ENTER_NVML();
    if (!REAL(nvmlDeviceGetIndex))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    int result = REAL(nvmlDeviceGetIndex)(device, index);
    int row = result == NVML_SUCCESS ? vg_nvml_row(device) : -1;
    if (row >= 0)
        *index = (unsigned int)row;
    return result;
}

/* ---- lists of GPUs --------------------------------------------------------------------------- */

/* Hands on what of `all` the container may see, in NVML's protocol: asked with no room, how many. */
static int hand_on(unsigned int n, const nvmlDevice_t *all, unsigned int *count, nvmlDevice_t *list)
{
    unsigned int kept = 0, room = *count;
    for (unsigned int i = 0; i < n && i < MOST_GPUS; i++) {
        if (vg_nvml_row(all[i]) < 0)
            continue;
        if (kept < room)
            list[kept] = all[i];
        kept++;
    }
    *count = room && room < kept ? room : kept;
    return NVML_SUCCESS;
}

VG_EXPORT int nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, int level, unsigned int *count,
                                               nvmlDevice_t *list)
{
    VG_ENTER_NVML();
    if (!REAL(nvmlDeviceGetTopologyNearestGpus))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlDevice_t all[MOST_GPUS];
    unsigned int n = MOST_GPUS;
    if (!count || (*count && !list) || !vg_view())
        return REAL(nvmlDeviceGetTopologyNearestGpus)(device, level, count, list);
    int result = REAL(nvmlDeviceGetTopologyNearestGpus)(device, level, &n, all);
    return result == NVML_SUCCESS ? hand_on(n, all, count, list) : result;
}

VG_EXPORT int nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count, nvmlDevice_t *list)
{
    VG_ENTER_NVML();
    if (!REAL(nvmlSystemGetTopologyGpuSet))
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlDevice_t all[MOST_GPUS];
    unsigned int n = MOST_GPUS;
    if (!count || (*count && !list) || !vg_view())
        return REAL(nvmlSystemGetTopologyGpuSet)(cpu, count, list);
    int result = REAL(nvmlSystemGetTopologyGpuSet)(cpu, &n, all);
    return result == NVML_SUCCESS ? hand_on(n, all, count, list) : result;
}

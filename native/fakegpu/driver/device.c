/* Devices as a process sees them: device files, CUDA_VISIBLE_DEVICES, names, sizes, peers. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "state/device_files.h"
#include "state/mig.h"
#include "state/process_table.h"

/* GPUs of the state that are not in MIG mode, by ordinal; before and after CUDA_VISIBLE_DEVICES. */
static int present[FG_GPUS], presents;
static int visible[FG_GPUS], visibles;
/* The MIG instance that is the one device of this process, if its profile is not "". */
static struct fg_mig instance;

static bool is_uuid(const char *prefix, const uint8_t u[16], const char *text, size_t length)
{
    char name[48];
    snprintf(name, sizeof name,
             "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", prefix,
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
    return length > 4 && length <= strlen(name) && !strncasecmp(name, text, length);
}

static int match_uuid(const char *text, size_t length)
{
    for (int i = 0; i < presents; i++)
        if (is_uuid("GPU", fg_state->gpu[present[i]].uuid, text, length))
            return present[i];
    return -1;
}

/* Makes the first MIG instance that this process has the files of its one device, or the one of
 * this name: CUDA enumerates one compute instance, and then no whole GPU (MIG user guide, "CUDA
 * device enumeration"). */
static bool take_instance(const char *text, size_t length)
{
    bool found = false;
    fg_lock();
    for (int gpu = 0; gpu < fg_state->gpus && !found; gpu++)
        for (uint32_t i = 0; i < fg_state->gpu[gpu].migs && !found; i++) {
            const struct fg_mig *mig = &fg_state->gpu[gpu].mig[i];
            found = fg_has_device_file(gpu) && fg_has_mig_files(gpu, mig) &&
                    (!text || is_uuid("MIG", mig->uuid, text, length));
            if (found) {
                visible[0] = gpu;
                visibles = 1;
                instance = *mig;
            }
        }
    fg_unlock();
    return found;
}

/* As the driver: ordinals or UUIDs (prefixes too), read up to the first that is not one. A device
 * named twice hides all of them. */
void fg_read_visible_devices(int *devices)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    presents = visibles = 0;
    instance.profile[0] = 0;
    for (int gpu = 0; gpu < fg_state->gpus; gpu++)
        if (fg_has_device_file(gpu) && !fg_state->gpu[gpu].mig_mode)
            present[presents++] = gpu;
    if (!text && take_instance(NULL, 0))
        goto done;
    if (!text) {
        for (; visibles < presents; visibles++)
            visible[visibles] = present[visibles];
    } else {
        while (*text && visibles < FG_GPUS) {
            while (isspace((unsigned char)*text))
                text++;
            size_t length = strcspn(text, ",");
            char *end;
            long ordinal = strtol(text, &end, 10);
            bool is_ordinal = isdigit((unsigned char)*text);
            if (!strncasecmp(text, "MIG-", 4) ? take_instance(text, length)
                                              : is_ordinal && !ordinal && take_instance(NULL, 0))
                goto done;
            int gpu = is_ordinal && ordinal < presents ? present[ordinal] : -1;
            if (!strncasecmp(text, "GPU-", 4))
                gpu = match_uuid(text, length);
            if (gpu < 0)
                break;
            for (int i = 0; i < visibles; i++)
                if (visible[i] == gpu) {
                    visibles = 0;
                    goto done;
                }
            visible[visibles++] = gpu;
            text += length + (text[length] == ',');
        }
    }
done:
    *devices = visibles;
}

int fg_gpu_of_device(CUdevice device)
{
    return device >= 0 && device < visibles ? visible[device] : -1;
}

CUdevice fg_device_of_gpu(int gpu)
{
    for (int i = 0; i < visibles; i++)
        if (visible[i] == gpu)
            return i;
    return -1;
}

const struct fg_mig *fg_instance(void)
{
    return *instance.profile ? &instance : NULL;
}

void fg_enter_instance(int gpu)
{
    int row = fg_own_process();
    fg_lock();
    if (row >= 0 && fg_instance()) {
        fg_state->process[row].gi[gpu] = (uint8_t)(instance.gi + 1);
        fg_state->process[row].ci[gpu] = (uint8_t)(instance.ci + 1);
    }
    fg_unlock();
}

CUresult fg_gpu_status(int gpu)
{
    return atomic_load(&fg_state->gpu[gpu].lost) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

#define NEED_GPU(device)                                                                           \
    int gpu = fg_gpu_of_device(device);                                                            \
    if (gpu < 0)                                                                                   \
        return CUDA_ERROR_INVALID_DEVICE;                                                          \
    const struct fg_profile *profile = &fg_state->gpu[gpu].profile;                                \
    (void)profile

CUresult FG(cuDeviceGet)(CUdevice *device, int ordinal)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (fg_gpu_of_device(ordinal) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetCount)(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = visibles;
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetName)(char *name, int length, CUdevice device)
{
    NEED_GPU(device);
    if (!name || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool whole = !fg_instance();
    snprintf(name, (size_t)length, "%s%s%s", profile->name, whole ? "" : " MIG ", instance.profile);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetUuid_v2)(CUuuid *uuid, CUdevice device)
{
    NEED_GPU(device);
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    const uint8_t *its = fg_instance() ? instance.uuid : fg_state->gpu[gpu].uuid;
    memcpy(uuid->bytes, its, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

/* The older one knows no MIG: it names the GPU around the instance. */
CUresult FG(cuDeviceGetUuid)(CUuuid *uuid, CUdevice device)
{
    NEED_GPU(device);
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, fg_state->gpu[gpu].uuid, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

static uint64_t memory_of(int gpu)
{
    return fg_instance() ? instance.memory_bytes : fg_state->gpu[gpu].profile.memory_bytes;
}

CUresult FG(cuDeviceTotalMem_v2)(size_t *bytes, CUdevice device)
{
    NEED_GPU(device);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = memory_of(gpu);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceTotalMem)(unsigned int *bytes, CUdevice device)
{
    NEED_GPU(device);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = memory_of(gpu) > UINT32_MAX ? UINT32_MAX : (unsigned)memory_of(gpu);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceComputeCapability)(int *major, int *minor, CUdevice device)
{
    NEED_GPU(device);
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    *major = (int)profile->capability_major;
    *minor = (int)profile->capability_minor;
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetPCIBusId)(char *text, int length, CUdevice device)
{
    NEED_GPU(device);
    if (!text || length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(text, (size_t)length, "0000:%02X:00.0", 0x18 + gpu * 8);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetByPCIBusId)(CUdevice *device, const char *text)
{
    unsigned domain, bus;
    if (!device || !text || sscanf(text, "%x:%x:", &domain, &bus) != 2)
        return CUDA_ERROR_INVALID_VALUE;
    *device = fg_device_of_gpu(((int)bus - 0x18) / 8);
    return *device < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult FG(cuDeviceCanAccessPeer)(int *can, CUdevice device, CUdevice peer)
{
    NEED_GPU(device);
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    if (fg_gpu_of_device(peer) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetP2PAttribute)(int *value, CUdevice_P2PAttribute attribute, CUdevice device,
                                     CUdevice peer)
{
    NEED_GPU(device);
    if (!value || fg_gpu_of_device(peer) < 0 || device == peer)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
             attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return CUDA_SUCCESS;
}

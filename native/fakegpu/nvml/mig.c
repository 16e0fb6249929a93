/* NVML: MIG mode, and MIG devices: handles of instances, which some questions about GPUs may be
 * asked for, too. All other questions are NOT_SUPPORTED for them. */
#include "nvml/nvml_entry.h"

#define CAPABILITY(gpu) (nv_profile(gpu)->capability_major * 10 + nv_profile(gpu)->capability_minor)

static bool is_capable(int gpu)
{
    return CAPABILITY(gpu) == 80 || CAPABILITY(gpu) >= 90;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current,
                                            unsigned int *pending)
{
    NV_ENTER(nvmlDeviceGetMigMode);
    NV_GPU(gpu, device);
    NV_NEEDS(current && pending);
    if (!is_capable(gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending =
        fg_state->gpu[gpu].mig_mode ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    return NVML_SUCCESS;
}

NV_NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, fg_state->gpu[gpu].mig_mode ? FG_MIGS : 0)

NV_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                           nvmlDevice_t *out)
{
    NV_ENTER(nvmlDeviceGetMigDeviceHandleByIndex);
    NV_GPU(gpu, device);
    NV_NEEDS(out && index < FG_MIGS);
    if (!fg_state->gpu[gpu].mig_mode)
        return NVML_ERROR_NOT_SUPPORTED;
    int its;
    struct fg_mig mig;
    *out = nv_mig_handle(gpu, (int)index);
    return nv_mig_of(*out, &its, &mig) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* The instance of a handle, in `mig`, and its GPU, in `gpu`; else the function has ended. */
#define NV_MIG(gpu, mig, device)                                                                   \
    int gpu;                                                                                       \
    struct fg_mig mig;                                                                             \
    if (!nv_mig_of(device, &gpu, &mig)) {                                                          \
        nvmlReturn_t refused = nv_gpu_of(device, &gpu);                                            \
        return refused == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : refused;                       \
    }

#define NV_MIG_NUMBER(function, value)                                                             \
    NV_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *out)                        \
    {                                                                                              \
        NV_ENTER(function);                                                                        \
        NV_MIG(gpu, mig, device);                                                                  \
        NV_NEEDS(out);                                                                             \
        *out = (value);                                                                            \
        return NVML_SUCCESS;                                                                       \
    }
NV_MIG_NUMBER(nvmlDeviceGetGpuInstanceId, mig.gi)
NV_MIG_NUMBER(nvmlDeviceGetComputeInstanceId, mig.ci)

NV_EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device,
                                                                    nvmlDevice_t *out)
{
    NV_ENTER(nvmlDeviceGetDeviceHandleFromMigDeviceHandle);
    NV_MIG(gpu, mig, device);
    NV_NEEDS(out);
    *out = nv_device_of(gpu);
    return NVML_SUCCESS;
}

static nvmlReturn_t attributes_of(nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
    NV_MIG(gpu, mig, device);
    NV_NEEDS(out);
    *out = (nvmlDeviceAttributes_t){.multiprocessorCount = (unsigned)mig.sm_count,
                                    .sharedCopyEngineCount = mig.gi_slices,
                                    .sharedDecoderCount = mig.gi_slices,
                                    .sharedJpegCount = mig.gi_slices,
                                    .gpuInstanceSliceCount = mig.gi_slices,
                                    .computeInstanceSliceCount = mig.ci_slices,
                                    .memorySizeMB = mig.memory_bytes >> 20};
    return NVML_SUCCESS;
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
    NV_ENTER(nvmlDeviceGetAttributes);
    return attributes_of(device, out);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
    NV_ENTER(nvmlDeviceGetAttributes_v2);
    return attributes_of(device, out);
}

/* ---- of GPUs and MIG devices ------------------------------------------------------------------ */

NV_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *out)
{
    NV_ENTER(nvmlDeviceIsMigDeviceHandle);
    NV_NEEDS(out);
    int gpu;
    struct fg_mig mig;
    *out = nv_mig_of(device, &gpu, &mig);
    return *out ? NVML_SUCCESS : nv_gpu_of(device, &gpu);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *out, unsigned int length)
{
    NV_ENTER(nvmlDeviceGetName);
    int its;
    struct fg_mig mig;
    if (nv_mig_of(device, &its, &mig))
        return nv_text(out, length, "%s MIG %s", nv_profile(its)->name, mig.profile);
    NV_GPU(gpu, device);
    return nv_text(out, length, "%s", nv_profile(gpu)->name);
}

NV_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *out, unsigned int length)
{
    NV_ENTER(nvmlDeviceGetUUID);
    int its;
    struct fg_mig mig;
    if (nv_mig_of(device, &its, &mig))
        return nv_uuid("MIG", mig.uuid, out, length);
    NV_GPU(gpu, device);
    return nv_uuid("GPU", fg_state->gpu[gpu].uuid, out, length);
}

/* That of a MIG device counts within its GPU. */
NV_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *out)
{
    NV_ENTER(nvmlDeviceGetIndex);
    NV_NEEDS(out);
    int its;
    struct fg_mig mig;
    if (nv_mig_of(device, &its, &mig)) {
        *out = (unsigned)nv_slot(device);
        return NVML_SUCCESS;
    }
    NV_GPU(gpu, device);
    *out = (unsigned)nv_index(gpu);
    return NVML_SUCCESS;
}

/* Devices as a process sees them: CUDA_VISIBLE_DEVICES, properties, attributes. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/core.h"

static int visible[FG_GPUS], visibles;

static int match_uuid(const char *text, size_t length)
{
    for (int gpu = 0; gpu < fg_state->gpus; gpu++) {
        char name[48];
        const uint8_t *u = fg_state->gpu[gpu].uuid;
        snprintf(name, sizeof name,
                 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
                 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
        if (length > 4 && length <= strlen(name) && !strncasecmp(name, text, length))
            return gpu;
    }
    return -1;
}

/* As the driver: ordinals or UUIDs (prefixes too), read up to the first that is not one. A device
 * named twice hides all of them. */
void fg_read_visible_devices(int *devices)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    visibles = 0;
    if (!text) {
        for (; visibles < fg_state->gpus; visibles++)
            visible[visibles] = visibles;
    } else {
        while (*text && visibles < FG_GPUS) {
            while (isspace((unsigned char)*text))
                text++;
            size_t length = strcspn(text, ",");
            char *end;
            long ordinal = strtol(text, &end, 10);
            int gpu = isdigit((unsigned char)*text) && ordinal < fg_state->gpus ? (int)ordinal : -1;
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

int fg_gpu_of_device(CUdevice device) { return device >= 0 && device < visibles ? visible[device] : -1; }

CUdevice fg_device_of_gpu(int gpu)
{
    for (int i = 0; i < visibles; i++)
        if (visible[i] == gpu)
            return i;
    return -1;
}

CUresult fg_gpu_status(int gpu)
{
    return atomic_load(&fg_state->gpu[gpu].lost) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

#define NEED_GPU(device) \
    int gpu = fg_gpu_of_device(device); \
    if (gpu < 0) \
        return CUDA_ERROR_INVALID_DEVICE; \
    const struct fg_profile *profile = &fg_state->gpu[gpu].profile; \
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
    snprintf(name, (size_t)length, "%s", profile->name);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetUuid_v2)(CUuuid *uuid, CUdevice device)
{
    NEED_GPU(device);
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, fg_state->gpu[gpu].uuid, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetUuid)(CUuuid *uuid, CUdevice device) { return FG(cuDeviceGetUuid_v2)(uuid, device); }

CUresult FG(cuDeviceTotalMem_v2)(size_t *bytes, CUdevice device)
{
    NEED_GPU(device);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = profile->memory_bytes;
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceTotalMem)(unsigned int *bytes, CUdevice device)
{
    NEED_GPU(device);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = profile->memory_bytes > UINT32_MAX ? UINT32_MAX : (unsigned)profile->memory_bytes;
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

CUresult FG(cuDeviceGetProperties)(CUdevprop *properties, CUdevice device)
{
    NEED_GPU(device);
    if (!properties)
        return CUDA_ERROR_INVALID_VALUE;
    *properties = (CUdevprop){
        .maxThreadsPerBlock = 1024, .maxThreadsDim = {1024, 1024, 64}, .maxGridSize = {INT32_MAX, 65535, 65535},
        .sharedMemPerBlock = 49152, .totalConstantMemory = 65536, .SIMDWidth = 32, .memPitch = INT32_MAX,
        .regsPerBlock = 65536, .clockRate = (int)profile->clock_mhz * 1000, .textureAlign = 512};
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetAttribute)(int *value, CUdevice_attribute attribute, CUdevice device)
{
    NEED_GPU(device);
    if (!value || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    bool pascal = profile->capability_major >= 6, hopper = profile->capability_major >= 9;
    switch (attribute) {
#define IS(name, number) case CU_DEVICE_ATTRIBUTE_##name: *value = (int)(number); break
        IS(MAX_THREADS_PER_BLOCK, 1024);
        IS(MAX_BLOCK_DIM_X, 1024);
        IS(MAX_BLOCK_DIM_Y, 1024);
        IS(MAX_BLOCK_DIM_Z, 64);
        IS(MAX_GRID_DIM_X, INT32_MAX);
        IS(MAX_GRID_DIM_Y, 65535);
        IS(MAX_GRID_DIM_Z, 65535);
        IS(MAX_SHARED_MEMORY_PER_BLOCK, 49152);
        IS(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, profile->shared_per_sm - 1024);
        IS(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, profile->shared_per_sm);
        IS(RESERVED_SHARED_MEMORY_PER_BLOCK, 1024);
        IS(TOTAL_CONSTANT_MEMORY, 65536);
        IS(WARP_SIZE, 32);
        IS(MAX_PITCH, INT32_MAX);
        IS(MAX_REGISTERS_PER_BLOCK, 65536);
        IS(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536);
        IS(CLOCK_RATE, profile->clock_mhz * 1000);
        IS(MEMORY_CLOCK_RATE, profile->memory_clock_mhz * 1000);
        IS(GLOBAL_MEMORY_BUS_WIDTH, profile->bus_bits);
        IS(L2_CACHE_SIZE, profile->l2_bytes);
        IS(TEXTURE_ALIGNMENT, 512);
        IS(TEXTURE_PITCH_ALIGNMENT, 32);
        IS(SURFACE_ALIGNMENT, 512);
        IS(MULTIPROCESSOR_COUNT, profile->sm_count);
        IS(MAX_THREADS_PER_MULTIPROCESSOR, profile->threads_per_sm);
        IS(MAX_BLOCKS_PER_MULTIPROCESSOR, 32);
        IS(COMPUTE_CAPABILITY_MAJOR, profile->capability_major);
        IS(COMPUTE_CAPABILITY_MINOR, profile->capability_minor);
        IS(INTEGRATED, 0);
        IS(KERNEL_EXEC_TIMEOUT, 0);
        IS(GPU_OVERLAP, 1);
        IS(ASYNC_ENGINE_COUNT, 3);
        IS(CAN_MAP_HOST_MEMORY, 1);
        IS(COMPUTE_MODE, 0);
        IS(CONCURRENT_KERNELS, 1);
        IS(ECC_ENABLED, hopper);
        IS(PCI_BUS_ID, 0x18 + gpu * 8);
        IS(PCI_DEVICE_ID, 0);
        IS(PCI_DOMAIN_ID, 0);
        IS(UNIFIED_ADDRESSING, 1);
        IS(STREAM_PRIORITIES_SUPPORTED, 1);
        IS(GLOBAL_L1_CACHE_SUPPORTED, 1);
        IS(LOCAL_L1_CACHE_SUPPORTED, 1);
        IS(MANAGED_MEMORY, 1);
        IS(CONCURRENT_MANAGED_ACCESS, profile->managed_concurrent);
        IS(PAGEABLE_MEMORY_ACCESS, 0);
        IS(COMPUTE_PREEMPTION_SUPPORTED, pascal);
        IS(COOPERATIVE_LAUNCH, profile->cooperative);
        IS(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1);
        IS(HOST_REGISTER_SUPPORTED, 1);
        IS(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1);
        IS(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1);
        IS(MEMORY_POOLS_SUPPORTED, 1);
        IS(MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        IS(IPC_EVENT_SUPPORTED, 1);
        IS(NUMA_ID, fg_state->gpu[gpu].numa);
        IS(HOST_NUMA_ID, fg_state->gpu[gpu].numa);
        IS(CLUSTER_LAUNCH, hopper);
        IS(MULTICAST_SUPPORTED, hopper);
        IS(SPARSE_CUDA_ARRAY_SUPPORTED, pascal);
        IS(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, pascal);
        IS(CAN_USE_STREAM_WAIT_VALUE_NOR, 1);
        IS(CAN_USE_64_BIT_STREAM_MEM_OPS, 1);
        IS(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, pascal ? 2 : 3);
#undef IS
    default:
        *value = 0;                    /* a feature that this GPU has not */
    }
    return CUDA_SUCCESS;
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

CUresult FG(cuDeviceGetP2PAttribute)(int *value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer)
{
    NEED_GPU(device);
    if (!value || fg_gpu_of_device(peer) < 0 || device == peer)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
             attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
    return CUDA_SUCCESS;
}

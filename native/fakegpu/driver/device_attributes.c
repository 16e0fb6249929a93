/* What a device says of itself: properties and attributes. */
#include "driver/driver.h"

#define NEED_GPU(device)                                                                           \
    int gpu = fg_gpu_of_device(device);                                                            \
    if (gpu < 0)                                                                                   \
        return CUDA_ERROR_INVALID_DEVICE;                                                          \
    const struct fg_profile *profile = &fg_state->gpu[gpu].profile;                                \
    (void)profile

CUresult FG(cuDeviceGetProperties)(CUdevprop *properties, CUdevice device)
{
    NEED_GPU(device);
    if (!properties)
        return CUDA_ERROR_INVALID_VALUE;
    *properties = (CUdevprop){.maxThreadsPerBlock = 1024,
                              .maxThreadsDim = {1024, 1024, 64},
                              .maxGridSize = {INT32_MAX, 65535, 65535},
                              .sharedMemPerBlock = 49152,
                              .totalConstantMemory = 65536,
                              .SIMDWidth = 32,
                              .memPitch = INT32_MAX,
                              .regsPerBlock = 65536,
                              .clockRate = (int)profile->clock_mhz * 1000,
                              .textureAlign = 512};
    return CUDA_SUCCESS;
}

CUresult FG(cuDeviceGetAttribute)(int *value, CUdevice_attribute attribute, CUdevice device)
{
    NEED_GPU(device);
    if (!value || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    bool pascal = profile->capability_major >= 6, hopper = profile->capability_major >= 9;
    switch (attribute) {
#define IS(name, number)                                                                           \
    case CU_DEVICE_ATTRIBUTE_##name: *value = (int)(number); break
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
        IS(MULTIPROCESSOR_COUNT, fg_instance() ? fg_instance()->sm_count : profile->sm_count);
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
    default: *value = 0; /* a feature that this GPU has not */
    }
    return CUDA_SUCCESS;
}

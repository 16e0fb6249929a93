/* Multicast objects: memory of several GPUs, bound. */
#include "vmm/physical.h"

CUresult FG(cuMulticastGetGranularity)(size_t *granule, const CUmulticastObjectProp *properties,
                                       CUmulticastGranularity_flags option)
{
    (void)option;
    if (!granule || !properties)
        return CUDA_ERROR_INVALID_VALUE;
    *granule = FG_GRANULE;
    return CUDA_SUCCESS;
}

CUresult FG(cuMulticastCreate)(CUmemGenericAllocationHandle *out,
                               const CUmulticastObjectProp *wanted)
{
    if (!out || !wanted || !wanted->numDevices || !wanted->size || wanted->size % FG_GRANULE ||
        wanted->flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (fg_state->gpus && fg_state->gpu[0].profile.capability_major < 9)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&fg_mutex);
    *out = fg_multicast_new(wanted->size)->number;
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

static struct fg_physical *multicast_of(CUmemGenericAllocationHandle number)
{
    struct fg_physical *object = fg_physical_of(number);
    return object && object->multicast ? object : NULL;
}

CUresult FG(cuMulticastAddDevice)(CUmemGenericAllocationHandle number, CUdevice device)
{
    int gpu = fg_gpu_of_device(device);
    pthread_mutex_lock(&fg_mutex);
    struct fg_physical *object = multicast_of(number);
    if (object && gpu >= 0)
        object->devices |= 1u << gpu;
    pthread_mutex_unlock(&fg_mutex);
    return object && gpu >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult bind_memory(CUmemGenericAllocationHandle number, size_t offset,
                            struct fg_physical *memory, size_t size)
{
    struct fg_physical *object = multicast_of(number);
    if (!object || !memory || memory->multicast || memory->gpu < 0 || !size || size % FG_GRANULE ||
        size > memory->size || offset > object->size || size > object->size - offset ||
        !(object->devices & 1u << memory->gpu))
        return CUDA_ERROR_INVALID_VALUE;
    fg_physical_bind(object, (uint64_t[5]){(uint64_t)memory->gpu, offset}, memory);
    return CUDA_SUCCESS;
}

CUresult FG(cuMulticastBindMem)(CUmemGenericAllocationHandle number, size_t offset,
                                CUmemGenericAllocationHandle memory, size_t memory_offset,
                                size_t size, unsigned long long flags)
{
    pthread_mutex_lock(&fg_mutex);
    CUresult result = flags || memory_offset
                          ? CUDA_ERROR_INVALID_VALUE
                          : bind_memory(number, offset, fg_physical_of(memory), size);
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMulticastBindMem_v2)(CUmemGenericAllocationHandle number, CUdevice device,
                                   size_t offset, CUmemGenericAllocationHandle memory,
                                   size_t memory_offset, size_t size, unsigned long long flags)
{
    return fg_gpu_of_device(device) < 0
               ? CUDA_ERROR_INVALID_DEVICE
               : FG(cuMulticastBindMem)(number, offset, memory, memory_offset, size, flags);
}

CUresult FG(cuMulticastBindAddr)(CUmemGenericAllocationHandle number, size_t offset,
                                 CUdeviceptr address, size_t size, unsigned long long flags)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    bool whole = !flags && range && range->kind == FG_MAPPED && range->base == address;
    CUresult result =
        whole ? bind_memory(number, offset, range->owner, size) : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMulticastBindAddr_v2)(CUmemGenericAllocationHandle number, CUdevice device,
                                    size_t offset, CUdeviceptr address, size_t size,
                                    unsigned long long flags)
{
    return fg_gpu_of_device(device) < 0
               ? CUDA_ERROR_INVALID_DEVICE
               : FG(cuMulticastBindAddr)(number, offset, address, size, flags);
}

CUresult FG(cuMulticastUnbind)(CUmemGenericAllocationHandle number, CUdevice device, size_t offset,
                               size_t size)
{
    int gpu = fg_gpu_of_device(device);
    pthread_mutex_lock(&fg_mutex);
    struct fg_physical *object = multicast_of(number);
    bool bound = object && gpu >= 0 && size &&
                 fg_physical_unbind(object, (uint64_t[5]){(uint64_t)gpu, offset});
    pthread_mutex_unlock(&fg_mutex);
    return bound ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

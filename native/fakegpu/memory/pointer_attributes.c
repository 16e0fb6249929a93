/* What an address is: cuPointerGetAttribute. */
#include <string.h>

#include "memory/ranges.h"

static CUresult put(void *data, const void *value, size_t size)
{
    memcpy(data, value, size);
    return CUDA_SUCCESS;
}
#define PUT(type, expression)                                                                      \
    do {                                                                                           \
        type value_ = (type)(expression);                                                          \
        return put(data, &value_, sizeof value_);                                                  \
    } while (0)

static CUresult attribute_of(void *data, CUpointer_attribute attribute, uint64_t address)
{
    struct fg_range *range = fg_range_at(address);
    bool host, managed;
    if (attribute == CU_POINTER_ATTRIBUTE_MAPPED)
        PUT(char, range != NULL);
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    host = range->kind == FG_HOST || range->kind == FG_REGISTERED;
    managed = range->kind == FG_MANAGED;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: PUT(CUcontext, range->context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        PUT(unsigned, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: PUT(CUdeviceptr, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host && !managed)
            return CUDA_ERROR_INVALID_VALUE;
        PUT(void *, address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: PUT(char, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: PUT(unsigned long long, range->id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: PUT(char, managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        PUT(int, range->gpu < 0 ? -1 : fg_device_of_gpu(range->gpu));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: PUT(char, range->kind == FG_DEVICE);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: PUT(CUdeviceptr, range->base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: PUT(size_t, range->size);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: PUT(cuuint64_t, range->handle_types);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: PUT(char, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        PUT(unsigned, range->kind == FG_MAPPED ? range->flags : 3 /* read and write */);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        PUT(CUmemoryPool, range->kind == FG_POOLED ? range->owner : NULL);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: PUT(size_t, range->size);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: PUT(CUdeviceptr, range->base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: PUT(unsigned long long, range->block_id);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult FG(cuPointerGetAttribute)(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = attribute_of(data, attribute, address);
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

/* Of an unknown address each attribute is a default, and the call succeeds. */
CUresult FG(cuPointerGetAttributes)(unsigned int count, CUpointer_attribute *attributes,
                                    void **data, CUdeviceptr address)
{
    if (!count || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    for (unsigned i = 0; i < count; i++)
        if (attribute_of(data[i], attributes[i], address)) {
            bool is_int = attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                          attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ||
                          attributes[i] == CU_POINTER_ATTRIBUTE_ACCESS_FLAGS;
            bool is_byte = attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                           attributes[i] == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
                           attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED ||
                           attributes[i] == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE ||
                           attributes[i] == CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE;
            memset(data[i], 0, is_byte ? 1 : is_int ? 4 : 8);
            if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
                memset(data[i], 0xff, 4);
        }
    pthread_mutex_unlock(&fg_mutex);
    return CUDA_SUCCESS;
}

CUresult FG(cuPointerSetAttribute)(const void *value, CUpointer_attribute attribute,
                                   CUdeviceptr address)
{
    pthread_mutex_lock(&fg_mutex);
    bool known = fg_range_at(address) != NULL;
    pthread_mutex_unlock(&fg_mutex);
    return known && value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

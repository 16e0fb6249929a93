/* Physical memory bound to what is no address range: sparse and deferred arrays, and multicast objects.
 * A binding holds the memory as a mapping does: after cuMemRelease it lives until unbound, or until
 * what it is bound to goes. */
#include <stdlib.h>
#include <string.h>

#include "driver/core.h"

struct binding {
    struct binding *next;
    const void *owner;                 /* array, or struct fg_physical of a multicast object */
    struct fg_physical *memory;
    uint64_t where[5];                 /* in the owner */
};
static struct binding *bindings;

static void bind(const void *owner, const uint64_t where[5], struct fg_physical *memory)
{
    struct binding *made = calloc(1, sizeof *made);
    if (!made)
        abort();
    made->next = bindings;
    made->owner = owner;
    made->memory = memory;
    memcpy(made->where, where, sizeof made->where);
    memory->mapped++;
    bindings = made;
}

/* where NULL: all of it. How many there were. */
static int unbind(const void *owner, const uint64_t *where)
{
    int ended = 0;
    for (struct binding **at = &bindings; *at;) {
        struct binding *each = *at;
        if (each->owner != owner || (where && memcmp(each->where, where, sizeof each->where))) {
            at = &each->next;
            continue;
        }
        *at = each->next;
        each->memory->mapped--;
        fg_physical_end_if_unheld(each->memory);
        free(each);
        ended++;
    }
    return ended;
}

void fg_bindings_end(const void *owner) { unbind(owner, NULL); }

/* ---- arrays ---------------------------------------------------------------------------------------- */

static CUresult map_one(const CUarrayMapInfo *info)
{
    bool mipmapped = info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    const void *owner = mipmapped ? (const void *)info->resource.mipmap : (const void *)info->resource.array;
    if ((!mipmapped && info->resourceType != CU_RESOURCE_TYPE_ARRAY) || !fg_array_takes_mappings(owner, mipmapped) ||
        info->flags || !info->deviceBitMask || info->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t where[5] = {(uint64_t)info->subresourceType};
    if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
        where[1] = info->subresource.miptail.layer;
        where[2] = info->subresource.miptail.offset;
    } else {
        where[1] = (uint64_t)info->subresource.sparseLevel.level << 32 | info->subresource.sparseLevel.layer;
        where[2] = info->subresource.sparseLevel.offsetX;
        where[3] = info->subresource.sparseLevel.offsetY;
        where[4] = info->subresource.sparseLevel.offsetZ;
    }
    if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
        return unbind(owner, where) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    struct fg_physical *memory = fg_physical_of(info->memHandle.memHandle);
    if (info->memOperationType != CU_MEM_OPERATION_TYPE_MAP || !memory || memory->multicast || info->offset >= memory->size)
        return CUDA_ERROR_INVALID_VALUE;
    unbind(owner, where);              /* what was mapped there gives way */
    bind(owner, where, memory);
    return CUDA_SUCCESS;
}

CUresult FG(cuMemMapArrayAsync)(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    (void)stream;
    CUresult result = list && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    for (unsigned i = 0; !result && i < count; i++)
        result = map_one(&list[i]);
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

/* ---- multicast objects -------------------------------------------------------------------------------- */

#define GRANULE (2ull << 20)

CUresult FG(cuMulticastGetGranularity)(size_t *granule, const CUmulticastObjectProp *properties,
                                       CUmulticastGranularity_flags option)
{
    (void)option;
    if (!granule || !properties)
        return CUDA_ERROR_INVALID_VALUE;
    *granule = GRANULE;
    return CUDA_SUCCESS;
}

CUresult FG(cuMulticastCreate)(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *wanted)
{
    if (!out || !wanted || !wanted->numDevices || !wanted->size || wanted->size % GRANULE || wanted->flags)
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

static CUresult bind_memory(CUmemGenericAllocationHandle number, size_t offset, struct fg_physical *memory, size_t size)
{
    struct fg_physical *object = multicast_of(number);
    if (!object || !memory || memory->multicast || memory->gpu < 0 || !size || size % GRANULE || size > memory->size ||
        offset > object->size || size > object->size - offset || !(object->devices & 1u << memory->gpu))
        return CUDA_ERROR_INVALID_VALUE;
    bind(object, (uint64_t[5]){(uint64_t)memory->gpu, offset}, memory);
    return CUDA_SUCCESS;
}

CUresult FG(cuMulticastBindMem)(CUmemGenericAllocationHandle number, size_t offset, CUmemGenericAllocationHandle memory,
                                size_t memory_offset, size_t size, unsigned long long flags)
{
    pthread_mutex_lock(&fg_mutex);
    CUresult result = flags || memory_offset ? CUDA_ERROR_INVALID_VALUE
                                             : bind_memory(number, offset, fg_physical_of(memory), size);
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMulticastBindMem_v2)(CUmemGenericAllocationHandle number, CUdevice device, size_t offset,
                                   CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                                   unsigned long long flags)
{
    return fg_gpu_of_device(device) < 0 ? CUDA_ERROR_INVALID_DEVICE
                                 : FG(cuMulticastBindMem)(number, offset, memory, memory_offset, size, flags);
}

CUresult FG(cuMulticastBindAddr)(CUmemGenericAllocationHandle number, size_t offset, CUdeviceptr address, size_t size,
                                 unsigned long long flags)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    bool whole = !flags && range && range->kind == FG_MAPPED && range->base == address;
    CUresult result = whole ? bind_memory(number, offset, range->owner, size) : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMulticastBindAddr_v2)(CUmemGenericAllocationHandle number, CUdevice device, size_t offset,
                                    CUdeviceptr address, size_t size, unsigned long long flags)
{
    return fg_gpu_of_device(device) < 0 ? CUDA_ERROR_INVALID_DEVICE
                                 : FG(cuMulticastBindAddr)(number, offset, address, size, flags);
}

CUresult FG(cuMulticastUnbind)(CUmemGenericAllocationHandle number, CUdevice device, size_t offset, size_t size)
{
    int gpu = fg_gpu_of_device(device);
    pthread_mutex_lock(&fg_mutex);
    struct fg_physical *object = multicast_of(number);
    bool bound = object && gpu >= 0 && size && unbind(object, (uint64_t[5]){(uint64_t)gpu, offset});
    pthread_mutex_unlock(&fg_mutex);
    return bound ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

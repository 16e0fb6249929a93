/* Physical memory mapped into sparse arrays and those for deferred mapping. */
#include "arrays/array.h"
#include "vmm/physical.h"

static CUresult map_one(const CUarrayMapInfo *info)
{
    bool mipmapped = info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    const void *owner =
        mipmapped ? (const void *)info->resource.mipmap : (const void *)info->resource.array;
    if ((!mipmapped && info->resourceType != CU_RESOURCE_TYPE_ARRAY) ||
        !fg_array_takes_mappings(owner, mipmapped) || info->flags || !info->deviceBitMask ||
        info->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t where[5] = {(uint64_t)info->subresourceType};
    if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
        where[1] = info->subresource.miptail.layer;
        where[2] = info->subresource.miptail.offset;
    } else {
        where[1] = (uint64_t)info->subresource.sparseLevel.level << 32 |
                   info->subresource.sparseLevel.layer;
        where[2] = info->subresource.sparseLevel.offsetX;
        where[3] = info->subresource.sparseLevel.offsetY;
        where[4] = info->subresource.sparseLevel.offsetZ;
    }
    if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
        return fg_physical_unbind(owner, where) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    struct fg_physical *memory = fg_physical_of(info->memHandle.memHandle);
    if (info->memOperationType != CU_MEM_OPERATION_TYPE_MAP || !memory || memory->multicast ||
        info->offset >= memory->size)
        return CUDA_ERROR_INVALID_VALUE;
    fg_physical_unbind(owner, where); /* what was mapped there gives way */
    fg_physical_bind(owner, where, memory);
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

/* Virtual memory management: reserved addresses, physical handles, mappings between them.
 *
 * A handle's memory is the GPU's again when nobody holds it: no handle, no mapping, no export. */
#include <stdlib.h>

#include "clock/clock.h"
#include "memory/gpu_memory.h"
#include "vmm/physical.h"

struct reservation {
    struct reservation *next;
    uint64_t base, size;
};
static struct reservation *reservations;

/* ---- addresses ------------------------------------------------------------------------------- */

CUresult FG(cuMemAddressReserve)(CUdeviceptr *out, size_t size, size_t align, CUdeviceptr wish,
                                 unsigned long long flags)
{
    if (!out || !size || size % FG_GRANULE || flags || (align && align & (align - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    uint64_t base = 0;
    if (wish && wish % FG_GRANULE == 0 && fg_va_reserve_at(wish, size))
        base = wish;
    if (!base)
        base = fg_va_reserve(size, align > FG_GRANULE ? align : FG_GRANULE);
    struct reservation *made = base ? malloc(sizeof *made) : NULL;
    if (made) {
        *made = (struct reservation){reservations, base, size};
        reservations = made;
        *out = base;
    }
    pthread_mutex_unlock(&fg_mutex);
    return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static struct reservation *covering(uint64_t base, uint64_t size)
{
    struct reservation *each = reservations;
    while (each && !(base >= each->base && base + size <= each->base + each->size))
        each = each->next;
    return each;
}

CUresult FG(cuMemAddressFree)(CUdeviceptr base, size_t size)
{
    pthread_mutex_lock(&fg_mutex);
    struct reservation *found = covering(base, size);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (found && found->base == base && found->size == size && !fg_range_overlapping(base, size)) {
        struct reservation **at = &reservations;
        while (*at != found)
            at = &(*at)->next;
        *at = found->next;
        free(found);
        fg_va_release(base, size);
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

/* ---- handles --------------------------------------------------------------------------------- */

/* The GPU of a location; -1: the host's memory, -2: no such place. */
static int place(const CUmemLocation *location)
{
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: {
        int gpu = fg_gpu_of_device(location->id);
        return gpu < 0 ? -2 : gpu;
    }
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return -1;
    default: return -2;
    }
}

CUresult FG(cuMemGetAllocationGranularity)(size_t *granule, const CUmemAllocationProp *properties,
                                           CUmemAllocationGranularity_flags option)
{
    if (!granule || !properties || place(&properties->location) == -2 ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
         option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    *granule = FG_GRANULE;
    return CUDA_SUCCESS;
}

CUresult FG(cuMemCreate)(CUmemGenericAllocationHandle *out, size_t size,
                         const CUmemAllocationProp *properties, unsigned long long flags)
{
    if (!out || !size || size % FG_GRANULE || !properties || flags ||
        properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    int gpu = place(&properties->location);
    if (gpu == -2)
        return CUDA_ERROR_INVALID_DEVICE;
    fg_clock_spend(0);
    pthread_mutex_lock(&fg_mutex);
    CUresult result = gpu >= 0 ? fg_gpu_status(gpu) : CUDA_SUCCESS;
    if (!result && gpu >= 0)
        result = fg_take_gpu_memory(gpu, size);
    if (!result)
        *out = fg_physical_new(gpu, size, properties)->number;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemRelease)(CUmemGenericAllocationHandle number)
{
    fg_clock_spend(0);
    pthread_mutex_lock(&fg_mutex);
    struct fg_physical *handle = fg_physical_of(number);
    if (handle) {
        handle->held--;
        fg_physical_end_if_unheld(handle);
    }
    pthread_mutex_unlock(&fg_mutex);
    return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemRetainAllocationHandle)(CUmemGenericAllocationHandle *out, void *address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at((uint64_t)address);
    struct fg_physical *handle = range && range->kind == FG_MAPPED ? range->owner : NULL;
    if (handle && out) {
        handle->held++;
        *out = handle->number;
    }
    pthread_mutex_unlock(&fg_mutex);
    return handle && out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult FG(cuMemGetAllocationPropertiesFromHandle)(CUmemAllocationProp *out,
                                                    CUmemGenericAllocationHandle number)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_physical *handle = fg_physical_of(number);
    if (handle && out)
        *out = handle->properties;
    pthread_mutex_unlock(&fg_mutex);
    return handle && out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- mappings -------------------------------------------------------------------------------- */

CUresult FG(cuMemMap)(CUdeviceptr base, size_t size, size_t offset,
                      CUmemGenericAllocationHandle number, unsigned long long flags)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_physical *handle = fg_physical_of(number);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (handle && size && size % FG_GRANULE == 0 && base % FG_GRANULE == 0 && !offset && !flags &&
        size <= handle->size && covering(base, size) && !fg_range_overlapping(base, size)) {
        struct fg_range *range = fg_range_new(FG_MAPPED, handle->gpu, NULL, base, size);
        if (!range)
            abort();
        range->owner = handle;
        range->content = &handle->content;
        range->block_id = handle->number;
        range->handle_types = handle->properties.requestedHandleTypes;
        handle->mapped++;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemUnmap)(CUdeviceptr base, size_t size)
{
    pthread_mutex_lock(&fg_mutex);
    uint64_t at = base;
    while (at < base + size) { /* whole mappings, one after the other */
        struct fg_range *range = fg_range_at(at);
        if (!range || range->kind != FG_MAPPED || range->base != at ||
            at + range->size > base + size)
            break;
        at += range->size;
    }
    CUresult result = size && at == base + size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (at = base; !result && at < base + size;) {
        struct fg_range *range = fg_range_at(at);
        struct fg_physical *handle = range->owner;
        at += range->size;
        fg_range_end(range);
        handle->mapped--;
        fg_physical_end_if_unheld(handle);
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemSetAccess)(CUdeviceptr base, size_t size, const CUmemAccessDesc *access,
                            size_t count)
{
    if (!access || !count || !size)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (place(&access[i].location) == -2)
            return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = CUDA_SUCCESS;
    for (uint64_t at = base; at < base + size && !result;) {
        struct fg_range *range = fg_range_at(at);
        if (!range || range->kind != FG_MAPPED) {
            result = CUDA_ERROR_INVALID_VALUE;
        } else {
            range->flags = access[0].flags;
            at = range->base + range->size;
        }
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemGetAccess)(unsigned long long *flags, const CUmemLocation *location,
                            CUdeviceptr address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    bool found = flags && location && range && range->kind == FG_MAPPED;
    if (found)
        *flags = range->flags;
    pthread_mutex_unlock(&fg_mutex);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

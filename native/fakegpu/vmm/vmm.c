/* Virtual memory management: reserved addresses, physical handles, mappings between them.
 *
 * A handle's memory is the GPU's again when nobody holds it: no handle, no mapping, no export. The
 * export is a file descriptor of a file beside the state, with a lock that lives as long as any copy
 * of the descriptor does, in any process; ledger.c looks at it. */
#define _GNU_SOURCE
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "driver/core.h"
#include "sharing/export_fd.h"

struct reservation { struct reservation *next; uint64_t base, size; };
static struct reservation *reservations;
static void *handles;                  /* tsearch tree by number */
static struct fg_physical *imported;     /* those of them that other processes may hold */
static uint64_t numbers;

#define GRANULE (2ull << 20)

/* ---- addresses ----------------------------------------------------------------------------------- */

CUresult FG(cuMemAddressReserve)(CUdeviceptr *out, size_t size, size_t align, CUdeviceptr wish, unsigned long long flags)
{
    if (!out || !size || size % GRANULE || flags || (align && align & (align - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    uint64_t base = 0;
    if (wish && wish % GRANULE == 0 && fg_va_reserve_at(wish, size))
        base = wish;
    if (!base)
        base = fg_va_reserve(size, align > GRANULE ? align : GRANULE);
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

/* ---- handles ------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
    const struct fg_physical *a = left, *b = right;
    return a->number < b->number ? -1 : a->number > b->number;
}

struct fg_physical *fg_physical_of(CUmemGenericAllocationHandle number)
{
    struct fg_physical key = {.number = number}, **found = tfind(&key, &handles, compare);
    return found && (*found)->held ? *found : NULL;
}

static struct fg_physical *new_handle(int gpu, uint64_t size, const CUmemAllocationProp *properties)
{
    struct fg_physical *handle = calloc(1, sizeof *handle);
    if (!handle)
        abort();
    *handle = (struct fg_physical){.number = ++numbers << 8 | 0x5a, .gpu = gpu, .size = size, .held = 1,
                                 .properties = *properties, .shared = -1};
    if (!tsearch(handle, &handles, compare))
        abort();
    return handle;
}

struct fg_physical *fg_multicast_new(uint64_t size)
{
    struct fg_physical *object = new_handle(-1, size, &(CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED});
    object->multicast = true;
    return object;
}

void fg_physical_end_if_unheld(struct fg_physical *handle)
{
    if (handle->held || handle->mapped)
        return;
    tdelete(handle, &handles, compare);
    fg_bindings_end(handle);
    if (handle->shared >= 0) {
        struct fg_physical **at = &imported;
        while (*at && *at != handle)
            at = &(*at)->next;
        if (*at)
            *at = handle->next;
        fg_shared_drop(handle->shared, handle->shared_id);
    } else if (handle->gpu >= 0) {
        fg_uncharge(handle->gpu, handle->size);
    }
    if (handle->backing)
        munmap(handle->backing, handle->size);
    free(handle);
}

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
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return -1;
    default:
        return -2;
    }
}

CUresult FG(cuMemGetAllocationGranularity)(size_t *granule, const CUmemAllocationProp *properties,
                                           CUmemAllocationGranularity_flags option)
{
    if (!granule || !properties || place(&properties->location) == -2 ||
        (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    *granule = GRANULE;
    return CUDA_SUCCESS;
}

CUresult FG(cuMemCreate)(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *properties,
                         unsigned long long flags)
{
    if (!out || !size || size % GRANULE || !properties || flags || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
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
        *out = new_handle(gpu, size, properties)->number;
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

CUresult FG(cuMemGetAllocationPropertiesFromHandle)(CUmemAllocationProp *out, CUmemGenericAllocationHandle number)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_physical *handle = fg_physical_of(number);
    if (handle && out)
        *out = handle->properties;
    pthread_mutex_unlock(&fg_mutex);
    return handle && out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- mappings -------------------------------------------------------------------------------------- */

CUresult FG(cuMemMap)(CUdeviceptr base, size_t size, size_t offset, CUmemGenericAllocationHandle number,
                      unsigned long long flags)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_physical *handle = fg_physical_of(number);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (handle && size && size % GRANULE == 0 && base % GRANULE == 0 && !offset && !flags && size <= handle->size &&
        covering(base, size) && !fg_range_overlapping(base, size)) {
        struct fg_range *range = fg_range_new(FG_MAPPED, handle->gpu, NULL, base, size);
        if (!range)
            abort();
        range->owner = handle;
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
    while (at < base + size) {         /* whole mappings, one after the other */
        struct fg_range *range = fg_range_at(at);
        if (!range || range->kind != FG_MAPPED || range->base != at || at + range->size > base + size)
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

CUresult FG(cuMemSetAccess)(CUdeviceptr base, size_t size, const CUmemAccessDesc *access, size_t count)
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

CUresult FG(cuMemGetAccess)(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
    pthread_mutex_lock(&fg_mutex);
    struct fg_range *range = fg_range_at(address);
    bool found = flags && location && range && range->kind == FG_MAPPED;
    if (found)
        *flags = range->flags;
    pthread_mutex_unlock(&fg_mutex);
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- between processes ------------------------------------------------------------------------------- */

CUresult FG(cuMemExportToShareableHandle)(void *out, CUmemGenericAllocationHandle number,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&fg_mutex);
    struct fg_physical *handle = fg_physical_of(number);
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (handle && handle->gpu >= 0 && handle->properties.requestedHandleTypes & type) {
        if (handle->shared < 0) {
            handle->shared = fg_shared_make(handle->gpu, handle->size, &handle->shared_id);
            if (handle->shared >= 0) {
                handle->next = imported;
                imported = handle;
            }
        }
        struct fg_export text = {.kind = FG_EXPORT_HANDLE, .shared = handle->shared, .id = handle->shared_id,
                                 .size = handle->size, .gpu = handle->gpu, .properties = handle->properties};
        int fd = handle->shared < 0 ? -1 : fg_export_make(&text);
        result = fd < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        if (fd >= 0)
            *(int *)out = fd;
    }
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

CUresult FG(cuMemImportFromShareableHandle)(CUmemGenericAllocationHandle *out, void *os_handle,
                                            CUmemAllocationHandleType type)
{
    struct fg_export text;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!fg_export_read((int)(intptr_t)os_handle, FG_EXPORT_HANDLE, &text) || fg_device_of_gpu(text.gpu) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&fg_mutex);
    CUresult result = CUDA_SUCCESS;
    struct fg_physical *handle = imported;
    while (handle && handle->shared_id != text.id)
        handle = handle->next;
    if (handle) {                      /* the same memory: another reference to it */
        handle->held++;
    } else if (fg_shared_hold(text.shared, text.id)) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        handle = new_handle(text.gpu, text.size, &text.properties);
        handle->next = imported;
        imported = handle;
        handle->properties.location.id = fg_device_of_gpu(text.gpu);
        handle->shared = text.shared;
        handle->shared_id = text.id;
    }
    if (!result)
        *out = handle->number;
    pthread_mutex_unlock(&fg_mutex);
    return result;
}

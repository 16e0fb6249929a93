/* Physical memory bound to what is no address range: sparse and deferred arrays, multicast objects.
 *
 * A binding holds the memory as a mapping does, until it is unbound or its array or multicast object
 * goes. It is found by a hash of the place; what is unbound at another place than it was bound at stays
 * charged until the owner goes, which errs on the safe side. Logical endpoints are not followed.
 *
 * A multicast object is in the book as a PHYSICAL record without bytes, so that its references are
 * counted, too. One that another process made is not, and may outlive our handle, as one may whose
 * exported descriptor is open: what is bound to such an object stays charged until it is unbound. */
#include <stdlib.h>

#include "ledger/memory.h"

static uint64_t vg_place(const uint64_t *word, size_t n)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ word[i]) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The reference to `memory` was counted before. Where something is bound already, it is added under the next
 * free key. */
static void vg_bound(uint64_t place, uint64_t owner, const struct vg_record *memory, void *context)
{
    struct vg_record record = {.kind = VG_KIND_BINDING, .key = place, .row = -1, .bytes = owner, .other = memory->key,
                               .context = context, .serial = memory->serial};
    struct vg_record there;
    while (vg_book_get(VG_KIND_BINDING, record.key, &there))
        record.key++;
    vg_book_put(&record);
}

static void vg_unbound(const struct vg_record *record, void *unused)
{
    (void)unused;
    vg_physical_drop(record->other, record->serial);
}

static bool vg_bound_to(const struct vg_record *record, const void *owner)
{
    return record->kind == VG_KIND_BINDING && record->bytes == *(const uint64_t *)owner;
}

void vg_bindings_end(uint64_t owner)
{
    vg_book_sweep(vg_bound_to, &owner, vg_unbound);
}

static bool vg_reference(uint64_t handle, struct vg_record *memory) /* false: not charged here */
{
    return vg_book_count(VG_KIND_PHYSICAL, handle, 0, 1, memory) > 0;
}

/* ---- arrays ---------------------------------------------------------------------------------------- */

static uint64_t vg_array_place(const CUarrayMapInfo *info)
{
    const uint64_t owner = (uint64_t)info->resource.array;
    if (info->subresource_type) /* the tail of the levels */
        return vg_place((uint64_t[]){owner, 1, info->subresource.tail.layer, info->subresource.tail.offset,
                                     info->subresource.tail.size}, 5);
    return vg_place((uint64_t[]){owner, 0, info->subresource.tile.level, info->subresource.tile.layer,
                                 info->subresource.tile.x, info->subresource.tile.y, info->subresource.tile.z,
                                 info->subresource.tile.width, info->subresource.tile.height,
                                 info->subresource.tile.depth}, 10);
}

/* The driver lets go when the stream comes to it. Of several bindings of one memory, as of the tiles of
 * an array, one waits for that, and the others go at once. */
static void vg_array_unbind(uint64_t place, struct vg_record *waiting, CUstream stream)
{
    struct vg_record record;
    for (; vg_book_take(VG_KIND_BINDING, place, &record); place++) {
        if (waiting->kind && waiting->other == record.other)
            vg_physical_drop(record.other, record.serial);
        else if (waiting->kind)
            vg_later(waiting, stream);
        *waiting = record;
    }
}

static CUresult vg_map_arrays(CUarrayMapInfo *list, unsigned int n, CUstream stream, CUstream meant,
                              CUresult (*call)(CUarrayMapInfo *, unsigned int, CUstream))
{
    struct vg_record *ours = list && n ? calloc(n, sizeof *ours) : NULL; /* the memory; kind 0: not charged here */
    if (!ours)
        return call(list, n, stream);
    vg_references_begin();
    for (unsigned int i = 0; i < n; i++)
        if (list[i].operation == CU_MEM_OPERATION_TYPE_MAP)
            vg_reference(list[i].handle, &ours[i]);
    CUresult result = call(list, n, stream);
    struct vg_record waiting = {0};
    for (unsigned int i = 0; i < n; i++) {
        struct vg_record array = {.context = NULL};
        uint64_t owner = (uint64_t)list[i].resource.array;
        if (result == CUDA_SUCCESS)
            vg_array_unbind(vg_array_place(&list[i]), &waiting, meant);
        if (ours[i].kind && result != CUDA_SUCCESS && n == 1) {
            vg_physical_drop(ours[i].key, ours[i].serial);
        } else if (ours[i].kind) { /* of several the driver may have mapped some: they count as mapped */
            if (!vg_book_get(VG_KIND_ARRAY, owner, &array))
                vg_book_get(VG_KIND_MIPMAP, owner, &array);
            vg_bound(vg_array_place(&list[i]), owner, &ours[i], array.context);
        }
    }
    if (waiting.kind)
        vg_later(&waiting, meant);
    vg_references_end();
    free(ours);
    return result;
}

VG_EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    VG_ENTER();
    return vg_map_arrays(list, count, stream, stream, REAL(cuMemMapArrayAsync));
}

VG_EXPORT CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    VG_ENTER();
    return vg_map_arrays(list, count, stream, stream ? stream : CU_STREAM_PER_THREAD, REAL(cuMemMapArrayAsync_ptsz));
}

/* ---- multicast objects -------------------------------------------------------------------------------- */

VG_EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle *object, const CUmulticastObjectProp *properties)
{
    VG_ENTER();
    CUresult result = REAL(cuMulticastCreate)(object, properties);
    if (result == CUDA_SUCCESS && vg_limits)
        vg_physical_made(&(struct vg_record){.kind = VG_KIND_PHYSICAL, .key = *object, .row = -1, .count = 1,
                                             .flags = VG_MULTICAST});
    return result;
}

static uint64_t vg_multicast_place(uint64_t object, CUdevice device, uint64_t offset, uint64_t size)
{
    return vg_place((uint64_t[]){object, 2, (uint64_t)device, offset, size}, 5);
}

/* The lock is held, and the driver bound `memory`; device -1: where the memory is. */
static void vg_multicast_bound(uint64_t object, CUdevice device, uint64_t offset, uint64_t memory, uint64_t size)
{
    struct vg_record record, owner;
    if (!vg_reference(memory, &record))
        return;
    uint64_t place = vg_multicast_place(object, device < 0 ? vg_row_device(record.row) : device, offset, size);
    vg_bound(place, vg_book_get(VG_KIND_PHYSICAL, object, &owner) ? owner.serial : object, &record, NULL);
}

VG_EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset, CUmemGenericAllocationHandle memory,
                                      size_t from, size_t size, unsigned long long flags)
{
    VG_ENTER();
    vg_references_begin();
    CUresult result = REAL(cuMulticastBindMem)(object, offset, memory, from, size, flags);
    if (result == CUDA_SUCCESS)
        vg_multicast_bound(object, -1, offset, memory, size);
    vg_references_end();
    return result;
}

VG_EXPORT CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
                                         CUmemGenericAllocationHandle memory, size_t from, size_t size,
                                         unsigned long long flags)
{
    VG_ENTER();
    vg_references_begin();
    CUresult result = REAL(cuMulticastBindMem_v2)(object, device, offset, memory, from, size, flags);
    if (result == CUDA_SUCCESS)
        vg_multicast_bound(object, device, offset, memory, size);
    vg_references_end();
    return result;
}

/* The handle of mapped memory, with a reference that the book does not know; 0: none. */
static CUmemGenericAllocationHandle vg_handle_at(CUdeviceptr address)
{
    CUmemGenericAllocationHandle handle = 0;
    if (REAL(cuMemRetainAllocationHandle) && REAL(cuMemRelease))
        REAL(cuMemRetainAllocationHandle)(&handle, (void *)address);
    return handle;
}

/* Another thread may unmap the address meanwhile: the handle is held over the call. */
static void vg_address_bound(CUresult result, uint64_t object, CUdevice device, uint64_t offset,
                             CUmemGenericAllocationHandle memory, uint64_t size)
{
    if (!memory)
        return;
    if (result == CUDA_SUCCESS)
        vg_multicast_bound(object, device, offset, memory, size);
    REAL(cuMemRelease)(memory);
}

VG_EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr address, size_t size,
                                       unsigned long long flags)
{
    VG_ENTER();
    vg_references_begin();
    CUmemGenericAllocationHandle memory = vg_handle_at(address);
    CUresult result = REAL(cuMulticastBindAddr)(object, offset, address, size, flags);
    vg_address_bound(result, object, -1, offset, memory, size);
    vg_references_end();
    return result;
}

VG_EXPORT CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
                                          CUdeviceptr address, size_t size, unsigned long long flags)
{
    VG_ENTER();
    vg_references_begin();
    CUmemGenericAllocationHandle memory = vg_handle_at(address);
    CUresult result = REAL(cuMulticastBindAddr_v2)(object, device, offset, address, size, flags);
    vg_address_bound(result, object, device, offset, memory, size);
    vg_references_end();
    return result;
}

VG_EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset, size_t size)
{
    VG_ENTER();
    struct vg_record record;
    vg_references_begin();
    CUresult result = REAL(cuMulticastUnbind)(object, device, offset, size);
    uint64_t place = vg_multicast_place(object, device, offset, size);
    for (; result == CUDA_SUCCESS && vg_book_take(VG_KIND_BINDING, place, &record); place++)
        vg_unbound(&record, NULL);
    vg_references_end();
    return result;
}

/* Multicast objects: physical memory of several GPUs bound to one object.
 *
 * A multicast object has a PHYSICAL record without bytes, so that its references are counted, too.
 * One that another process made has none, and may outlive our handle, as one may whose exported
 * descriptor is open: what is bound to such an object stays charged until it is unbound. */
#include "virtual_memory/virtual_memory.h"

VG_EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle *object,
                                     const CUmulticastObjectProp *properties)
{
    VG_ENTER();
    CUresult result = REAL(cuMulticastCreate)(object, properties);
    if (result == CUDA_SUCCESS && vg_limits)
        vg_physical_made(&(struct vg_record){.kind = VG_KIND_PHYSICAL,
                                             .key = *object,
                                             .row = -1,
                                             .count = 1,
                                             .flags = VG_MULTICAST});
    return result;
}

static uint64_t multicast_place(uint64_t object, CUdevice device, uint64_t offset, uint64_t size)
{
    return vg_binding_place((uint64_t[]){object, 2, (uint64_t)device, offset, size}, 5);
}

/* The lock is held, and the driver bound `memory`; device -1: where the memory is. */
static void multicast_bound(uint64_t object, CUdevice device, uint64_t offset, uint64_t memory,
                            uint64_t size)
{
    struct vg_record record, owner;
    if (!vg_physical_add(memory, &record))
        return;
    uint64_t place =
        multicast_place(object, device < 0 ? vg_row_device(record.row) : device, offset, size);
    vg_bound(place, vg_record_get(VG_KIND_PHYSICAL, object, &owner) ? owner.serial : object,
             &record, NULL);
}

VG_EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset,
                                      CUmemGenericAllocationHandle memory, size_t from, size_t size,
                                      unsigned long long flags)
{
    VG_ENTER();
    vg_references_begin();
    CUresult result = REAL(cuMulticastBindMem)(object, offset, memory, from, size, flags);
    if (result == CUDA_SUCCESS)
        multicast_bound(object, -1, offset, memory, size);
    vg_references_end();
    return result;
}

VG_EXPORT CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle object, CUdevice device,
                                         size_t offset, CUmemGenericAllocationHandle memory,
                                         size_t from, size_t size, unsigned long long flags)
{
    VG_ENTER();
    vg_references_begin();
    CUresult result =
        REAL(cuMulticastBindMem_v2)(object, device, offset, memory, from, size, flags);
    if (result == CUDA_SUCCESS)
        multicast_bound(object, device, offset, memory, size);
    vg_references_end();
    return result;
}

/* The handle of mapped memory, with a reference that no record counts; 0: none. */
static CUmemGenericAllocationHandle handle_at(CUdeviceptr address)
{
    CUmemGenericAllocationHandle handle = 0;
    if (REAL(cuMemRetainAllocationHandle) && REAL(cuMemRelease))
        REAL(cuMemRetainAllocationHandle)(&handle, (void *)address);
    return handle;
}

/* Another thread may unmap the address meanwhile: the handle is held over the call. */
static void address_bound(CUresult result, uint64_t object, CUdevice device, uint64_t offset,
                          CUmemGenericAllocationHandle memory, uint64_t size)
{
    if (!memory)
        return;
    if (result == CUDA_SUCCESS)
        multicast_bound(object, device, offset, memory, size);
    REAL(cuMemRelease)(memory);
}

VG_EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t offset,
                                       CUdeviceptr address, size_t size, unsigned long long flags)
{
    VG_ENTER();
    vg_references_begin();
    CUmemGenericAllocationHandle memory = handle_at(address);
    CUresult result = REAL(cuMulticastBindAddr)(object, offset, address, size, flags);
    address_bound(result, object, -1, offset, memory, size);
    vg_references_end();
    return result;
}

VG_EXPORT CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle object, CUdevice device,
                                          size_t offset, CUdeviceptr address, size_t size,
                                          unsigned long long flags)
{
    VG_ENTER();
    vg_references_begin();
    CUmemGenericAllocationHandle memory = handle_at(address);
    CUresult result = REAL(cuMulticastBindAddr_v2)(object, device, offset, address, size, flags);
    address_bound(result, object, device, offset, memory, size);
    vg_references_end();
    return result;
}

VG_EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice device,
                                     size_t offset, size_t size)
{
    VG_ENTER();
    struct vg_record record;
    vg_references_begin();
    CUresult result = REAL(cuMulticastUnbind)(object, device, offset, size);
    uint64_t place = multicast_place(object, device, offset, size);
    for (; result == CUDA_SUCCESS && vg_record_take(VG_KIND_BINDING, place, &record); place++)
        vg_physical_drop(record.other, record.serial);
    vg_references_end();
    return result;
}

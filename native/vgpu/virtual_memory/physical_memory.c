/* Physical memory, by handle: made, retained and released; who still holds it (virtual_memory.h).
 *
 * One lock is held across the calls that add references and those that drop them by handle: else
 * one thread could map what another is releasing, after it was found to be the last reference. None
 * of those calls waits for the GPU. */
#include <pthread.h>

#include "virtual_memory/virtual_memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void vg_references_begin(void)
{
    pthread_mutex_lock(&lock);
}

void vg_references_end(void)
{
    pthread_mutex_unlock(&lock);
}

void vg_physical_credit(const struct vg_record *record)
{
    if (record->row >= 0)
        vg_release(record->row, record->bytes);
    else
        vg_host_release(record->bytes);
}

/* The driver dropped the last reference that is recorded. */
static void physical_gone(const struct vg_record *record)
{
    if (vg_export_holds(record))
        return;
    if (record->flags & VG_MULTICAST)
        vg_bindings_end(record->serial);
    else
        vg_physical_credit(record);
}

void vg_physical_drop(uint64_t handle, uint64_t serial)
{
    struct vg_record record;
    if (vg_record_count(VG_KIND_PHYSICAL, handle, serial, -1, &record) == 0)
        physical_gone(&record);
}

bool vg_physical_add(uint64_t handle, struct vg_record *record)
{
    return vg_record_count(VG_KIND_PHYSICAL, handle, 0, 1, record) > 0;
}

void vg_physical_made(struct vg_record *record)
{
    static _Atomic uint64_t last;
    struct vg_record old;
    record->serial = atomic_fetch_add(&last, 1) + 1;
    if (vg_record_exchange(record, &old)) /* the driver gave its handle out again: it has gone */
        physical_gone(&old);
}

VG_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                               const CUmemAllocationProp *prop, unsigned long long flags)
{
    VG_ENTER();
    if (!prop || !vg_limits)
        return REAL(cuMemCreate)(handle, size, prop, flags);
    bool host = prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    struct vg_charge charge;
    struct vg_record record = {
        .kind = VG_KIND_PHYSICAL, .row = -1, .count = 1, .bytes = vg_rounded(size)};
    if (host ? !vg_host_reserve(record.bytes)
             : !vg_charge_begin(&charge, vg_row(prop->location.id), size, record.bytes,
                                VG_CALL_ALLOC))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemCreate)(handle, size, prop, flags);
    if (host) {
        if (result != CUDA_SUCCESS)
            vg_host_release(record.bytes);
    } else {
        record.row = (int8_t)charge.row;
        vg_charge_end(&charge, result == CUDA_SUCCESS ? record.bytes : 0);
    }
    if (result == CUDA_SUCCESS && (host || record.row >= 0)) {
        record.key = *handle;
        vg_physical_made(&record);
    }
    return result;
}

VG_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    VG_ENTER();
    struct vg_record record;
    vg_references_begin();
    /* Before the call: the driver may give the handle's value to another thread at once. */
    int64_t left = vg_record_count(VG_KIND_PHYSICAL, handle, 0, -1, &record);
    if (left == 0 && record.row >= 0)
        vg_leave(record.row, record.bytes);
    CUresult result = REAL(cuMemRelease)(handle);
    if (left == 0 && result == CUDA_SUCCESS)
        physical_gone(&record);
    if (left == 0 && record.row >= 0)
        vg_left(record.row, record.bytes, 0);
    if (result != CUDA_SUCCESS && left == 0) {
        record.count = 1;
        vg_record_put(&record);
    } else if (result != CUDA_SUCCESS && left > 0) {
        vg_record_count(VG_KIND_PHYSICAL, handle, 0, 1, &record);
    }
    vg_references_end();
    return result;
}

VG_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    VG_ENTER();
    struct vg_record record;
    vg_references_begin();
    CUresult result = REAL(cuMemRetainAllocationHandle)(handle, address);
    if (result == CUDA_SUCCESS)
        vg_record_count(VG_KIND_PHYSICAL, *handle, 0, 1, &record);
    vg_references_end();
    return result;
}

void vg_virtual_memory_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    vg_exports_forked();
}

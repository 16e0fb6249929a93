/* Virtual memory management: physical handles, and the mappings that keep them alive.
 *
 * A handle is charged when it is created, to the GPU of its location (not the current one). It is
 * credited when its last reference goes: each of cuMemCreate, cuMemRetainAllocationHandle, every
 * mapping, and every binding (bindings.c) is one, and after them an open descriptor of an export
 * (exports.c). So memory that was released but is still mapped stays charged. Imported handles are
 * the exporter's to pay and in no book, unless the exporter is this process. What other processes
 * hold longer is found by NVML, and comes back as overhead.
 *
 * One lock is held across the calls that add references and those that drop them by handle: else one
 * thread could map what another is releasing, after it was found to be the last reference. Unmapping may
 * take long, so that its call gets no lock: its mappings are taken out of the book before it (the address
 * may be mapped anew at once), and their references are dropped after it. By then the driver may have
 * given the handle to other memory; the serial tells the two apart. */
#include <pthread.h>

#include "ledger/memory.h"

static pthread_mutex_t vg_references_lock = PTHREAD_MUTEX_INITIALIZER;

void vg_references_begin(void)
{
    pthread_mutex_lock(&vg_references_lock);
}

void vg_references_end(void)
{
    pthread_mutex_unlock(&vg_references_lock);
}

void vg_physical_credit(const struct vg_record *record)
{
    if (record->row >= 0)
        vg_release(record->row, record->bytes);
    else
        vg_host_release(record->bytes);
}

/* The driver dropped the last reference that the book knows. */
static void vg_physical_gone(const struct vg_record *record)
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
    if (vg_book_count(VG_KIND_PHYSICAL, handle, serial, -1, &record) == 0)
        vg_physical_gone(&record);
}

void vg_physical_made(struct vg_record *record)
{
    static _Atomic uint64_t last;
    struct vg_record old;
    record->serial = atomic_fetch_add(&last, 1) + 1;
    if (vg_book_exchange(record, &old)) /* the driver gave its handle out again: it has gone */
        vg_physical_gone(&old);
}

VG_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                               unsigned long long flags)
{
    VG_ENTER();
    if (!prop || !vg_limits)
        return REAL(cuMemCreate)(handle, size, prop, flags);
    bool host = prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    struct vg_charge charge;
    struct vg_record record = {.kind = VG_KIND_PHYSICAL, .row = -1, .count = 1, .bytes = vg_rounded(size)};
    if (host ? !vg_host_reserve(record.bytes)
             : !vg_charge_begin(&charge, vg_row(prop->location.id), size, record.bytes, VG_CALL_ALLOC))
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
    pthread_mutex_lock(&vg_references_lock);
    /* Before the call: the driver may give the handle's value to another thread at once. */
    int64_t left = vg_book_count(VG_KIND_PHYSICAL, handle, 0, -1, &record);
    if (left == 0 && record.row >= 0)
        vg_leave(record.row, record.bytes);
    CUresult result = REAL(cuMemRelease)(handle);
    if (left == 0 && result == CUDA_SUCCESS)
        vg_physical_gone(&record);
    if (left == 0 && record.row >= 0)
        vg_left(record.row, record.bytes, 0);
    if (result != CUDA_SUCCESS && left == 0) {
        record.count = 1;
        vg_book_put(&record);
    } else if (result != CUDA_SUCCESS && left > 0) {
        vg_book_count(VG_KIND_PHYSICAL, handle, 0, 1, &record);
    }
    pthread_mutex_unlock(&vg_references_lock);
    return result;
}

VG_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    VG_ENTER();
    struct vg_record record;
    pthread_mutex_lock(&vg_references_lock);
    CUresult result = REAL(cuMemRetainAllocationHandle)(handle, address);
    if (result == CUDA_SUCCESS)
        vg_book_count(VG_KIND_PHYSICAL, *handle, 0, 1, &record);
    pthread_mutex_unlock(&vg_references_lock);
    return result;
}

VG_EXPORT CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
                                                CUmemAllocationHandleType type, unsigned long long flags)
{
    VG_ENTER();
    struct vg_record record;
    pthread_mutex_lock(&vg_references_lock);
    CUresult result = REAL(cuMemExportToShareableHandle)(shared, handle, type, flags);
    if (result == CUDA_SUCCESS && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
        vg_book_get(VG_KIND_PHYSICAL, handle, &record))
        vg_export_made(*(int *)shared, record.serial);
    pthread_mutex_unlock(&vg_references_lock);
    return result;
}

/* What this process exported comes back as the same handle, with one more reference. */
VG_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
                                                  CUmemAllocationHandleType type)
{
    VG_ENTER();
    struct vg_record record;
    pthread_mutex_lock(&vg_references_lock);
    CUresult result = REAL(cuMemImportFromShareableHandle)(handle, shared, type);
    if (result == CUDA_SUCCESS && vg_book_count(VG_KIND_PHYSICAL, *handle, 0, 1, &record) < 0 &&
        type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        vg_export_back((int)(intptr_t)shared, *handle);
    pthread_mutex_unlock(&vg_references_lock);
    return result;
}

VG_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                            unsigned long long flags)
{
    VG_ENTER();
    struct vg_record record;
    pthread_mutex_lock(&vg_references_lock);
    bool ours = vg_book_count(VG_KIND_PHYSICAL, handle, 0, 1, &record) > 0;
    CUresult result = REAL(cuMemMap)(ptr, size, offset, handle, flags);
    if (ours && result == CUDA_SUCCESS)
        vg_book_put(&(struct vg_record){.kind = VG_KIND_MAPPING, .key = ptr, .row = record.row, .bytes = size,
                                        .other = handle, .serial = record.serial});
    else if (ours)
        vg_physical_drop(handle, record.serial);
    pthread_mutex_unlock(&vg_references_lock);
    return result;
}

struct vg_unmapping {
    struct vg_taken taken;     /* first: sweeping the book puts records there */
    uint64_t start, end;
    uint64_t bytes[VG_DEVICES]; /* what it gives back, by row: of handles whose last reference goes */
    CUresult result;
};

static bool vg_mapped_in(const struct vg_record *record, const void *argument)
{
    const struct vg_unmapping *all = argument;
    return record->kind == VG_KIND_MAPPING && record->key >= all->start && record->key < all->end;
}

/* Takes what the call will unmap: one mapping, or several that lie side by side. */
static void vg_unmap_take(struct vg_unmapping *all)
{
    struct vg_record record;
    if (vg_book_take(VG_KIND_MAPPING, all->start, &record))
        vg_taken_add(&record, &all->taken);
    if (!all->taken.count || record.bytes < all->end - all->start)
        vg_book_sweep(vg_mapped_in, all, vg_taken_add);
}

static void vg_unmap_leaves(const struct vg_record *record, void *argument)
{
    struct vg_unmapping *all = argument;
    struct vg_record handle;
    if (record->row >= 0 && vg_book_get(VG_KIND_PHYSICAL, record->other, &handle) && handle.serial == record->serial &&
        handle.count == 1)
        all->bytes[record->row] += handle.bytes;
}

static void vg_unmapped(const struct vg_record *record, void *argument)
{
    const struct vg_unmapping *all = argument;
    if (all->result == CUDA_SUCCESS)
        vg_physical_drop(record->other, record->serial);
    else
        vg_book_put(record);
}

VG_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    VG_ENTER();
    struct vg_unmapping all = {.start = ptr, .end = ptr + size};
    pthread_mutex_lock(&vg_references_lock);
    vg_unmap_take(&all);
    vg_taken_each(&all.taken, vg_unmap_leaves, &all);
    pthread_mutex_unlock(&vg_references_lock);
    for (int row = 0; row < VG_DEVICES; row++)
        if (all.bytes[row])
            vg_leave(row, all.bytes[row]);
    all.result = REAL(cuMemUnmap)(ptr, size);
    pthread_mutex_lock(&vg_references_lock);
    vg_taken_each(&all.taken, vg_unmapped, &all);
    pthread_mutex_unlock(&vg_references_lock);
    vg_taken_forget(&all.taken);
    for (int row = 0; row < VG_DEVICES; row++)
        if (all.bytes[row])
            vg_left(row, all.bytes[row], 0);
    return all.result;
}

void vg_vmm_forked(void)
{
    pthread_mutex_init(&vg_references_lock, NULL);
    vg_exports_forked();
}

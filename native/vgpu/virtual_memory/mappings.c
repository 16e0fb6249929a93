/* Mappings of physical memory into the address space (cuMemMap, cuMemUnmap): each keeps its memory.
 *
 * Unmapping may take long, so that its call gets no lock: its mappings are taken out of the records
 * before it (the address may be mapped anew at once), and their references are dropped after it. By
 * then the driver may have given the handle to other memory; the serial tells the two apart. */
#include "virtual_memory/virtual_memory.h"

VG_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                            CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    VG_ENTER();
    struct vg_record record;
    vg_references_begin();
    bool ours = vg_physical_add(handle, &record);
    CUresult result = REAL(cuMemMap)(ptr, size, offset, handle, flags);
    if (ours && result == CUDA_SUCCESS)
        vg_record_put(&(struct vg_record){.kind = VG_KIND_MAPPING,
                                          .key = ptr,
                                          .row = record.row,
                                          .bytes = size,
                                          .other = handle,
                                          .serial = record.serial});
    else if (ours)
        vg_physical_drop(handle, record.serial);
    vg_references_end();
    return result;
}

struct unmapping {
    /* first: a sweep of the records puts them there */
    struct vg_taken taken;
    uint64_t start, end;
    /* what it gives back, by row: of handles whose last reference goes */
    uint64_t bytes[VG_DEVICES];
    CUresult result;
};

static bool mapped_in(const struct vg_record *record, const void *argument)
{
    const struct unmapping *all = argument;
    return record->kind == VG_KIND_MAPPING && record->key >= all->start && record->key < all->end;
}

/* Takes what the call will unmap: one mapping, or several that lie side by side. */
static void take_mappings(struct unmapping *all)
{
    struct vg_record record;
    if (vg_record_take(VG_KIND_MAPPING, all->start, &record))
        vg_taken_add(&record, &all->taken);
    if (!all->taken.count || record.bytes < all->end - all->start)
        vg_record_sweep(mapped_in, all, vg_taken_add);
}

static void note_leaving(const struct vg_record *record, void *argument)
{
    struct unmapping *all = argument;
    struct vg_record handle;
    if (record->row >= 0 && vg_record_get(VG_KIND_PHYSICAL, record->other, &handle) &&
        handle.serial == record->serial && handle.count == 1)
        all->bytes[record->row] += handle.bytes;
}

static void unmapped(const struct vg_record *record, void *argument)
{
    const struct unmapping *all = argument;
    if (all->result == CUDA_SUCCESS)
        vg_physical_drop(record->other, record->serial);
    else
        vg_record_put(record);
}

VG_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    VG_ENTER();
    struct unmapping all = {.start = ptr, .end = ptr + size};
    vg_references_begin();
    take_mappings(&all);
    vg_taken_each(&all.taken, note_leaving, &all);
    vg_references_end();
    for (int row = 0; row < VG_DEVICES; row++)
        if (all.bytes[row])
            vg_leave(row, all.bytes[row]);
    all.result = REAL(cuMemUnmap)(ptr, size);
    vg_references_begin();
    vg_taken_each(&all.taken, unmapped, &all);
    vg_references_end();
    vg_taken_forget(&all.taken);
    for (int row = 0; row < VG_DEVICES; row++)
        if (all.bytes[row])
            vg_left(row, all.bytes[row], 0);
    return all.result;
}

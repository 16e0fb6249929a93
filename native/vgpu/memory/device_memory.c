/* Plain device memory: cuMemAlloc, cuMemAllocPitch, cuMemAllocManaged and cuMemFree. What the slice
 * has no room for comes from the host, where that is allowed (swapped.c).
 *
 * Each reserves the size rounded up to blocks, asks the driver, and then is charged with the blocks
 * that nobody here used yet: never more than reserved, unless the driver places or pads the memory
 * otherwise than expected. Then the rest is reserved, or the allocation is undone and refused. */
#include "counting/call_counts.h"
#include "memory/memory.h"
#include "pools/pools.h"

static void note(const struct vg_charge *charge, enum vg_kind kind, uint64_t address,
                 uint64_t bytes)
{
    vg_record_put(&(struct vg_record){.kind = (uint8_t)kind,
                                      .key = address,
                                      .row = (int8_t)charge->row,
                                      .bytes = bytes,
                                      .context = vg_context()});
}

/* After the driver has (or has not) allocated at `address`. */
static CUresult allocated(struct vg_charge *charge, CUresult result, uint64_t address,
                          uint64_t bytes)
{
    if (charge->row < 0)
        return result;
    if (result != CUDA_SUCCESS) {
        vg_charge_end(charge, 0);
        return result;
    }
    uint64_t actual = vg_blocks_use(address, bytes);
    if (!vg_charge_more(charge, actual)) {
        REAL(cuMemFree_v2)(address);
        vg_blocks_leave(address, bytes);
        vg_charge_end(charge, 0);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    note(charge, VG_KIND_DIRECT, address, bytes);
    vg_charge_end(charge, actual);
    return CUDA_SUCCESS;
}

static bool allocating(struct vg_charge *charge, uint64_t bytes)
{
    return vg_charge_begin(charge, vg_current_row(), bytes, vg_rounded(bytes), VG_CALL_ALLOC);
}

/* The same, where what is refused may come from the host. */
static bool allocating_here(struct vg_charge *charge, uint64_t bytes)
{
    int row = vg_current_row();
    return (vg_swap_limit(row) ? vg_charge_try : vg_charge_begin)(charge, row, bytes,
                                                                  vg_rounded(bytes), VG_CALL_ALLOC);
}

/* What `allocating_here` refused. */
static CUresult from_the_host(CUdeviceptr *dptr, uint64_t bytes)
{
    int row = vg_current_row();
    return bytes && vg_swap_limit(row) ? vg_swap_allocate(dptr, row, bytes)
                                       : CUDA_ERROR_OUT_OF_MEMORY;
}

VG_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!allocating_here(&charge, bytesize))
        return from_the_host(dptr, bytesize);
    CUresult result = REAL(cuMemAlloc_v2)(dptr, bytesize);
    return allocated(&charge, result, result ? 0 : *dptr, bytesize);
}

/* of CUDA 3.1 and before */
VG_EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!allocating(&charge, bytesize))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAlloc)(dptr, bytesize);
    return allocated(&charge, result, result ? 0 : *dptr, bytesize);
}

/* The pitch is not known before the call: 512 bytes is the largest alignment of any GPU so far. */
static uint64_t pitched(uint64_t width, uint64_t height)
{
    uint64_t bytes;
    if (width > UINT64_MAX - 511 || __builtin_mul_overflow((width + 511) & ~511ull, height, &bytes))
        return UINT64_MAX;
    return bytes;
}

VG_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height,
                                      unsigned int element)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!allocating_here(&charge, pitched(width, height))) {
        CUresult refused = from_the_host(dptr, pitched(width, height));
        if (refused == CUDA_SUCCESS)
            *pitch = pitched(width, 1);
        return refused;
    }
    CUresult result = REAL(cuMemAllocPitch_v2)(dptr, pitch, width, height, element);
    return allocated(&charge, result, result ? 0 : *dptr, result ? 0 : *pitch * height);
}

VG_EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pitch, unsigned int width,
                                   unsigned int height, unsigned int element)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!allocating(&charge, pitched(width, height)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = REAL(cuMemAllocPitch)(dptr, pitch, width, height, element);
    return allocated(&charge, result, result ? 0 : *dptr, result ? 0 : (uint64_t)*pitch * height);
}

/* Managed memory may all come to lie on the GPU: it is charged in full, to the GPU it was made on,
 * and shares no block. */
VG_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    VG_ENTER();
    struct vg_charge charge;
    if (!allocating_here(&charge, bytesize))
        return from_the_host(dptr, bytesize);
    CUresult result = REAL(cuMemAllocManaged)(dptr, bytesize, flags);
    if (result == CUDA_SUCCESS && charge.row >= 0)
        note(&charge, VG_KIND_MANAGED, *dptr, charge.reserved);
    vg_charge_end(&charge, result == CUDA_SUCCESS ? charge.reserved : 0);
    return result;
}

/* The record goes first: once freed, the driver may give the address to another thread. */
static CUresult free_memory(uint64_t address, CUresult (*free_it)(uint64_t))
{
    struct vg_record record;
    if (vg_record_take(VG_KIND_STREAMED, address, &record))
        return vg_pool_free(&record, free_it);
    if (vg_swap_take(address, &record))
        return vg_swap_free(&record);
    if (!vg_record_take(VG_KIND_DIRECT, address, &record) &&
        !vg_record_take(VG_KIND_MANAGED, address, &record))
        return free_it(address); /* zero, imported, freed before, or from before our time */
    uint64_t begun = vg_count_begin(), hint = vg_rounded(record.bytes);
    vg_leave(record.row, hint);
    CUresult result = free_it(address);
    if (result == CUDA_SUCCESS) {
        bool managed = record.kind == VG_KIND_MANAGED;
        vg_left(record.row, hint, managed ? record.bytes : vg_blocks_leave(address, record.bytes));
    } else {
        vg_left(record.row, hint, 0);
        vg_record_put(&record);
    }
    vg_count_end(VG_CALL_FREE, begun, result ? 0 : record.bytes);
    return result;
}

static CUresult real_free(uint64_t address)
{
    return REAL(cuMemFree_v2)(address);
}
static CUresult real_free_v1(uint64_t address)
{
    return REAL(cuMemFree)((CUdeviceptr_v1)address);
}

VG_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    VG_ENTER();
    return free_memory(dptr, real_free);
}

VG_EXPORT CUresult cuMemFree(CUdeviceptr_v1 dptr)
{
    VG_ENTER();
    return free_memory(dptr, real_free_v1);
}

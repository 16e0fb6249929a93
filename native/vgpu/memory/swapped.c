/* Memory beyond the slice, from the host, where the limits page allows it (swap_limit).
 *
 * An allocation that the slice has no room for is made as managed memory whose place is the host:
 * the GPU reads and writes it over the link, and it takes none of the GPU's memory, of which the
 * slice stays the limit. It is charged to an account of its own (ledger/host_account.c). Where the
 * driver cannot hold it there (no concurrent access to managed memory, or advice that it refuses),
 * the allocation is refused as without this.
 *
 * It stays in the host's memory for its life, also when the slice has room again. So advice about
 * it, and calls that would fetch it to a GPU, succeed and do nothing: the driver takes them for
 * hints, and one of them would take the program past its slice.
 */
#include "counting/call_counts.h"
#include "memory/memory.h"

/* How many there are: who has none asks the table for none. */
static _Atomic uint64_t live;

/* Whether the driver lets GPU and host use managed memory at the same time; the row's device. */
static bool can_swap(int row, CUdevice *device)
{
    int concurrent = 0;
    *device = vg_row_device(row);
    return *device >= 0 && REAL(cuMemAdvise) && REAL(cuMemAllocManaged) &&
           REAL(cuDeviceGetAttribute)(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
                                      *device) == CUDA_SUCCESS &&
           concurrent;
}

/* `bytes` of the host's memory that the GPU may use where they are. */
static bool place(CUdeviceptr *dptr, uint64_t bytes, CUdevice device)
{
    /* attached to the host, so that no page of it begins on the GPU */
    if (REAL(cuMemAllocManaged)(dptr, bytes, CU_MEM_ATTACH_HOST) != CUDA_SUCCESS)
        return false;
    if (REAL(cuMemAdvise)(*dptr, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU) ==
            CUDA_SUCCESS &&
        REAL(cuMemAdvise)(*dptr, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, device) == CUDA_SUCCESS)
        return true;
    REAL(cuMemFree_v2)(*dptr);
    return false;
}

CUresult vg_swap_allocate(CUdeviceptr *dptr, int row, uint64_t bytes)
{
    uint64_t begun = vg_count_begin(), reserved = vg_rounded(bytes);
    CUdevice device;
    CUdeviceptr address;
    bool taken = can_swap(row, &device) && vg_swap_reserve(row, reserved);
    if (!taken || !place(&address, bytes, device)) {
        if (taken)
            vg_swap_release(row, reserved);
        vg_refused(row);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t actual = vg_blocks_use(address, bytes);
    if (actual < reserved)
        vg_swap_release(row, reserved - actual);
    atomic_fetch_add(&live, 1);
    vg_record_put(&(struct vg_record){.kind = VG_KIND_SWAPPED,
                                      .key = address,
                                      .row = (int8_t)row,
                                      .bytes = bytes,
                                      .context = vg_context()});
    vg_count_end(VG_CALL_ALLOC, begun, bytes);
    *dptr = address;
    return CUDA_SUCCESS;
}

void vg_swap_freed(const struct vg_record *record)
{
    atomic_fetch_sub(&live, 1);
    vg_swap_release(record->row, vg_blocks_leave(record->key, record->bytes));
}

bool vg_swap_take(CUdeviceptr address, struct vg_record *record)
{
    return atomic_load_explicit(&live, memory_order_relaxed) &&
           vg_record_take(VG_KIND_SWAPPED, address, record);
}

CUresult vg_swap_free(struct vg_record *record)
{
    uint64_t begun = vg_count_begin();
    CUresult result = REAL(cuMemFree_v2)(record->key);
    if (result == CUDA_SUCCESS)
        vg_swap_freed(record);
    else
        vg_record_put(record);
    vg_count_end(VG_CALL_FREE, begun, result ? 0 : record->bytes);
    return result;
}

void vg_swap_forked(void)
{
    atomic_store(&live, 0);
}

/* ---- hints ----------------------------------------------------------------------------------- */

struct span {
    uint64_t from, bytes;
    bool *met;
};

static bool meets(const struct vg_record *record, const void *argument)
{
    const struct span *span = argument;
    if (record->kind == VG_KIND_SWAPPED)
        *span->met |= span->from >= record->key ? span->from - record->key < record->bytes
                                                : record->key - span->from < span->bytes;
    return false; /* all stay where they are */
}

static bool is_swapped(CUdeviceptr address, uint64_t bytes)
{
    bool met = false;
    if (atomic_load_explicit(&live, memory_order_relaxed))
        vg_record_sweep(meets, &(struct span){address, bytes, &met}, NULL);
    return met;
}

static bool some_swapped(const CUdeviceptr *address, const size_t *bytes, size_t count)
{
    for (size_t i = 0; address && bytes && i < count; i++)
        if (is_swapped(address[i], bytes[i]))
            return true;
    return false;
}

VG_EXPORT CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                               CUdevice device)
{
    VG_ENTER();
    return is_swapped(address, bytes) ? CUDA_SUCCESS
                                      : REAL(cuMemAdvise)(address, bytes, advice, device);
}

VG_EXPORT CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                                  CUmemLocation location)
{
    VG_ENTER();
    return is_swapped(address, bytes) ? CUDA_SUCCESS
                                      : REAL(cuMemAdvise_v2)(address, bytes, advice, location);
}

#define PREFETCH(name)                                                                             \
    VG_EXPORT CUresult name(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)   \
    {                                                                                              \
        VG_ENTER();                                                                                \
        return is_swapped(address, bytes) ? CUDA_SUCCESS                                           \
                                          : REAL(name)(address, bytes, device, stream);            \
    }
PREFETCH(cuMemPrefetchAsync)
PREFETCH(cuMemPrefetchAsync_ptsz)

#define PREFETCH_2(name)                                                                           \
    VG_EXPORT CUresult name(CUdeviceptr address, size_t bytes, CUmemLocation location,             \
                            unsigned int flags, CUstream stream)                                   \
    {                                                                                              \
        VG_ENTER();                                                                                \
        return is_swapped(address, bytes) ? CUDA_SUCCESS                                           \
                                          : REAL(name)(address, bytes, location, flags, stream);   \
    }
PREFETCH_2(cuMemPrefetchAsync_v2)
PREFETCH_2(cuMemPrefetchAsync_v2_ptsz)

/* Where one of them is meant, none is fetched: hints all of them. */
#define BATCH(name)                                                                                \
    VG_EXPORT CUresult name(CUdeviceptr *address, size_t *bytes, size_t count,                     \
                            CUmemLocation *location, size_t *first, size_t locations,              \
                            unsigned long long flags, CUstream stream)                             \
    {                                                                                              \
        VG_ENTER();                                                                                \
        return some_swapped(address, bytes, count)                                                 \
                   ? CUDA_SUCCESS                                                                  \
                   : REAL(name)(address, bytes, count, location, first, locations, flags, stream); \
    }
BATCH(cuMemPrefetchBatchAsync)
BATCH(cuMemPrefetchBatchAsync_ptsz)
BATCH(cuMemDiscardAndPrefetchBatchAsync)
BATCH(cuMemDiscardAndPrefetchBatchAsync_ptsz)

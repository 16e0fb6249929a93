/* Hooks of stream-ordered allocation: which pool a call means, and what it does to it (pools.c,
 * pool_allocations.c).
 *
 * In a stream that is being captured these calls make graph nodes and no memory: graph_memory.c. */
#include "compute/compute.h"
#include "memory/memory.h"
#include "pools/pools.h"

/* -1: not limited */
static CUdevice stream_device(CUstream stream)
{
    int row = vg_stream_row(stream);
    return row < 0 ? -1 : vg_row_device(row);
}

static CUresult plain(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)pool;
    return REAL(cuMemAllocAsync)(dptr, bytes, stream);
}

static CUresult plain_ptsz(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)pool;
    return REAL(cuMemAllocAsync_ptsz)(dptr, bytes, stream);
}

static CUresult allocate_async(CUdeviceptr *dptr, size_t bytes, CUstream stream, CUstream meant,
                               CUresult (*call)(CUdeviceptr *, size_t, CUmemoryPool, CUstream))
{
    CUmemoryPool pool;
    CUdevice device = stream_device(meant);
    if (device < 0 || !dptr || vg_is_captured(meant) ||
        REAL(cuDeviceGetMemPool)(&pool, device) != CUDA_SUCCESS)
        return call(dptr, bytes, NULL, stream);
    return vg_pool_allocate(pool, device, dptr, bytes, meant, stream, call);
}

VG_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytes, CUstream stream)
{
    VG_ENTER();
    return allocate_async(dptr, bytes, stream, stream, plain);
}

VG_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytes, CUstream stream)
{
    VG_ENTER();
    return allocate_async(dptr, bytes, stream, PER_THREAD(stream), plain_ptsz);
}

static CUresult allocate_from(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool, CUstream stream,
                              CUstream meant,
                              CUresult (*call)(CUdeviceptr *, size_t, CUmemoryPool, CUstream))
{
    CUdevice device = stream_device(meant);
    if (device < 0 || !dptr || vg_is_captured(meant))
        return call(dptr, bytes, pool, stream);
    return vg_pool_allocate(pool, device, dptr, bytes, meant, stream, call);
}

VG_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,
                                           CUstream stream)
{
    VG_ENTER();
    return allocate_from(dptr, bytes, pool, stream, stream, REAL(cuMemAllocFromPoolAsync));
}

VG_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,
                                                CUstream stream)
{
    VG_ENTER();
    return allocate_from(dptr, bytes, pool, stream, PER_THREAD(stream),
                         REAL(cuMemAllocFromPoolAsync_ptsz));
}

static CUresult free_async(CUdeviceptr dptr, CUstream stream, CUstream meant,
                           CUresult (*call)(CUdeviceptr, CUstream))
{
    struct vg_record record;
    if (vg_is_captured(meant))
        return call(dptr, stream);
    if (vg_record_take(VG_KIND_STREAMED, dptr, &record))
        return vg_pool_free_async(&record, meant, stream, call);
    if (vg_record_take(VG_KIND_DIRECT, dptr, &record) ||
        vg_record_take(VG_KIND_MANAGED, dptr, &record))
        return vg_free_in_stream(&record, meant, stream, call);
    if (vg_swap_take(dptr, &record)) {
        /* The driver knows this call for memory of pools and of the GPU, not for the host's. */
        REAL(cuStreamSynchronize)(meant);
        return vg_swap_free(&record);
    }
    CUresult result = call(dptr, stream); /* of a graph, perhaps */
    vg_pools_refresh();
    return result;
}

VG_EXPORT CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream stream)
{
    VG_ENTER();
    return free_async(dptr, stream, stream, REAL(cuMemFreeAsync));
}

VG_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream stream)
{
    VG_ENTER();
    return free_async(dptr, stream, PER_THREAD(stream), REAL(cuMemFreeAsync_ptsz));
}

/* ---- pools ----------------------------------------------------------------------------------- */

VG_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    VG_ENTER();
    CUresult result = REAL(cuMemPoolCreate)(pool, properties);
    if (result == CUDA_SUCCESS && vg_limits)
        vg_pool_note(*pool, properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE
                                ? properties->location.id
                                : -1);
    return result;
}

VG_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    VG_ENTER();
    return vg_pool_destroy(pool);
}

VG_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    VG_ENTER();
    struct vg_expected expected;
    uint64_t left = keep;
    vg_pools_expect(&expected, pool, &left);
    CUresult result = REAL(cuMemPoolTrimTo)(pool, keep);
    vg_pools_settle(&expected);
    return result;
}

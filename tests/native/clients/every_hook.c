/* Calls the driver's functions that are hooked, variant by variant, and prints "name result" for
 * each: what it prints must be the same with and without the library
 * (tests/native/test_every_hook.py).
 *
 * Arguments are machine words, as in replay.c. Good ones first; then each of a family once more
 * with arguments that the driver refuses. At the end: the bytes that cuMemGetInfo says are used.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t word;
#define MIB (1ull << 20)
#define W(x) ((word)(uintptr_t)(x))
/* C(cuMemFree_v2, p): nothing where this driver lacks the function. */
#define C(name, ...) call(#name, (word[12]){__VA_ARGS__})
#define BOTH(name, ...) (C(name, __VA_ARGS__), C(name##_ptsz, __VA_ARGS__))
#define SYNC(name, ...) (C(name, __VA_ARGS__), C(name##_ptds, __VA_ARGS__))

static void *library;
static char host[8 * MIB], other[8 * MIB];
static char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n";

static int call(const char *name, const word *a)
{
    int (*f)(word, word, word, word, word, word, word, word, word, word, word, word);
    int result;

    *(void **)&f = dlsym(library, name);
    if (!f)
        return -1;
    result = f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
    printf("%s %d\n", name, result);
    return result;
}

static void memory(void)
{
    CUDA_ARRAY_DESCRIPTOR flat = {
        .Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUDA_ARRAY3D_DESCRIPTOR deep = {
        .Width = 64, .Height = 64, .Depth = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    word p = 0, q = 0, pitch = 0, a = 0, b = 0, m = 0, free_, total;

    C(cuMemAlloc_v2, W(&p), 8 * MIB);
    C(cuMemAlloc_v2, W(&q), 8 * MIB);
    C(cuMemGetInfo_v2, W(&free_), W(&total));
    C(cuMemGetInfo, W(&free_), W(&total));
    C(cuDeviceTotalMem_v2, W(&total), 0);
    C(cuDeviceTotalMem, W(&total), 0);
    C(cuMemGetInfo_v2, 0, 0);
    C(cuArrayCreate_v2, W(&a), W(&flat));
    C(cuArrayCreate_v2, W(&b), W(&flat));
    SYNC(cuMemcpyHtoD_v2, p, W(host), MIB);
    SYNC(cuMemcpyDtoH_v2, W(host), p, MIB);
    SYNC(cuMemcpyDtoD_v2, p, q, MIB);
    SYNC(cuMemcpy, p, q, MIB);
    BOTH(cuMemcpyAsync, p, q, MIB, 0);
    BOTH(cuMemcpyHtoDAsync_v2, p, W(host), MIB, 0);
    BOTH(cuMemcpyDtoHAsync_v2, W(host), p, MIB, 0);
    BOTH(cuMemcpyDtoDAsync_v2, p, q, MIB, 0);
    SYNC(cuMemcpyDtoA_v2, a, 0, p, 4096);
    SYNC(cuMemcpyAtoD_v2, p, a, 0, 4096);
    SYNC(cuMemcpyHtoA_v2, a, 0, W(host), 4096);
    SYNC(cuMemcpyAtoH_v2, W(host), a, 0, 4096);
    SYNC(cuMemcpyAtoA_v2, a, 0, b, 0, 4096);
    BOTH(cuMemcpyHtoAAsync_v2, a, 0, W(host), 4096, 0);
    BOTH(cuMemcpyAtoHAsync_v2, W(host), a, 0, 4096, 0);
    CUDA_MEMCPY2D plane = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = host,
                           .srcPitch = 1024,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = p,
                           .dstPitch = 1024,
                           .WidthInBytes = 512,
                           .Height = 64};
    SYNC(cuMemcpy2D_v2, W(&plane));
    SYNC(cuMemcpy2DUnaligned_v2, W(&plane));
    BOTH(cuMemcpy2DAsync_v2, W(&plane), 0);
    CUDA_MEMCPY3D cube = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = p,
                          .srcPitch = 1024,
                          .srcHeight = 64,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = other,
                          .dstPitch = 1024,
                          .dstHeight = 64,
                          .WidthInBytes = 512,
                          .Height = 8,
                          .Depth = 2};
    SYNC(cuMemcpy3D_v2, W(&cube));
    BOTH(cuMemcpy3DAsync_v2, W(&cube), 0);
    BOTH(cuMemsetD8Async, p, 1, MIB, 0);
    BOTH(cuMemsetD16Async, p, 1, MIB, 0);
    BOTH(cuMemsetD32Async, p, 1, MIB, 0);
    BOTH(cuMemsetD2D8Async, p, 1024, 1, 512, 64, 0);
    BOTH(cuMemsetD2D16Async, p, 1024, 1, 512, 64, 0);
    BOTH(cuMemsetD2D32Async, p, 4096, 1, 512, 64, 0);
    SYNC(cuMemsetD8_v2, p, 1, MIB);
    SYNC(cuMemsetD16_v2, p, 1, MIB);
    SYNC(cuMemsetD32_v2, p, 1, MIB);
    SYNC(cuMemsetD2D8_v2, p, 1024, 1, 512, 64);
    SYNC(cuMemsetD2D16_v2, p, 1024, 1, 512, 64);
    SYNC(cuMemsetD2D32_v2, p, 4096, 1, 512, 64);
    C(cuCtxSynchronize, 0);
    C(cuArrayDestroy, a);
    C(cuArrayDestroy, b);
    C(cuArrayDestroy, b);
    C(cuArray3DCreate_v2, W(&a), W(&deep));
    C(cuArrayDestroy, a);
    deep.Depth = 0;
    C(cuMipmappedArrayCreate, W(&m), W(&deep), 3);
    C(cuMipmappedArrayDestroy, m);
    C(cuMemFree_v2, p);
    C(cuMemFree_v2, p);
    C(cuMemFree_v2, q);
    C(cuMemAllocPitch_v2, W(&p), W(&pitch), 1000, 1000, 4);
    C(cuMemFree_v2, p);
    C(cuMemAllocPitch_v2, W(&p), W(&pitch), 0, 0, 4);
    C(cuMemAllocManaged, W(&p), 4 * MIB, 1);
    C(cuMemFree_v2, p);
    C(cuMemAllocManaged, W(&p), 4 * MIB, 77);
    C(cuMemAlloc_v2, W(&p), 0);
    C(cuMemAlloc_v2, 0, 4096);
    C(cuMemFree_v2, 12345);
}

static void of_the_host(void)
{
    word p = 0, d = 0;

    C(cuMemAllocHost_v2, W(&p), MIB);
    C(cuMemFreeHost, p);
    C(cuMemHostAlloc, W(&p), MIB, 2);
    C(cuMemHostGetDevicePointer_v2, W(&d), p, 0);
    C(cuMemFreeHost, p);
    C(cuMemFreeHost, p);
    C(cuMemHostAlloc, W(&p), 0, 0);
    C(cuMemHostRegister_v2, W(host), MIB, 0);
    C(cuMemHostRegister_v2, W(host), MIB, 0);
    C(cuMemHostUnregister, W(host));
    C(cuMemHostUnregister, W(host));
    C(cuMemAllocHost_v2, 0, MIB);
    C(cuMemAllocHost, W(&p), MIB);
    C(cuMemFreeHost, p);
    C(cuMemHostRegister, W(host), MIB, 0);
    C(cuMemHostUnregister, W(host));
}

/* The functions of CUDA before 3.2 and 4.0, whose pointers and sizes have 32 bits: no memory of
 * today's drivers can be named by them, so they are refused; in what way is the driver's to say. */
static void of_old(void)
{
    unsigned flat[] = {64, 64, CU_AD_FORMAT_FLOAT, 1},
             deep[] = {16, 16, 16, CU_AD_FORMAT_FLOAT, 1, 0};
    word small[64] = {0}, a = 0, p = 0, total = 0;

    if (C(cuArrayCreate, W(&a), W(flat)) == 0)
        C(cuArrayDestroy, a);
    if (C(cuArray3DCreate, W(&a), W(deep)) == 0)
        C(cuArrayDestroy, a);
    C(cuMemAlloc, W(&p), 4096);
    C(cuMemAllocPitch, W(&p), W(&total), 64, 64, 4);
    C(cuMemFree, 77);
    C(cuMemcpyHtoD, 77, W(host), 0);
    C(cuMemcpyDtoH, W(host), 77, 0);
    C(cuMemcpyDtoD, 77, 78, 0);
    C(cuMemcpyDtoA, 0, 0, 77, 0);
    C(cuMemcpyAtoD, 77, 0, 0, 0);
    C(cuMemcpyHtoA, 0, 0, W(host), 0);
    C(cuMemcpyAtoH, W(host), 0, 0, 0);
    C(cuMemcpyAtoA, 0, 0, 0, 0, 0);
    C(cuMemcpyHtoAAsync, 0, 0, W(host), 0, 0);
    C(cuMemcpyAtoHAsync, W(host), 0, 0, 0, 0);
    C(cuMemcpyHtoDAsync, 77, W(host), 0, 0);
    C(cuMemcpyDtoHAsync, W(host), 77, 0, 0);
    C(cuMemcpyDtoDAsync, 77, 78, 0, 0);
    C(cuMemcpy2D, W(small));
    C(cuMemcpy2DUnaligned, W(small));
    C(cuMemcpy2DAsync, W(small), 0);
    C(cuMemcpy3D, W(small));
    C(cuMemcpy3DAsync, W(small), 0);
    C(cuMemsetD8, 77, 0, 0);
    C(cuMemsetD16, 77, 0, 0);
    C(cuMemsetD32, 77, 0, 0);
    C(cuMemsetD2D8, 77, 64, 0, 0, 0);
    C(cuMemsetD2D16, 77, 64, 0, 0, 0);
    C(cuMemsetD2D32, 77, 64, 0, 0, 0);
}

/* Memory that is freed in the order of a stream though it does not come from a pool, and peers. */
static void between(void)
{
    word p = 0, q = 0, context = 0, fail = 0, size = MIB;

    C(cuMemAlloc_v2, W(&p), 8 * MIB);
    C(cuMemFreeAsync, p, 0);
    C(cuMemAlloc_v2, W(&p), 8 * MIB);
    C(cuMemFreeAsync_ptsz, p, 0);
    C(cuMemAllocManaged, W(&p), 4 * MIB, 1);
    C(cuMemFreeAsync, p, 0);
    C(cuMemFreeAsync, 77, 0);
    C(cuCtxSynchronize, 0);
    C(cuMemAllocAsync, W(&p), 4 * MIB, 0);
    C(cuMemFree_v2, p);
    C(cuMemAlloc_v2, W(&p), 8 * MIB);
    C(cuMemAlloc_v2, W(&q), 8 * MIB);
    C(cuCtxGetCurrent, W(&context));
    SYNC(cuMemcpyPeer, p, context, q, context, MIB);
    BOTH(cuMemcpyPeerAsync, p, context, q, context, MIB, 0);
    CUDA_MEMCPY3D_PEER cube = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = q,
                               .srcPitch = 1024,
                               .srcHeight = 64,
                               .srcContext = (CUcontext)context,
                               .dstContext = (CUcontext)context,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = p,
                               .dstPitch = 1024,
                               .dstHeight = 64,
                               .WidthInBytes = 512,
                               .Height = 8,
                               .Depth = 2};
    SYNC(cuMemcpy3DPeer, W(&cube));
    BOTH(cuMemcpy3DPeerAsync, W(&cube), 0);
    BOTH(cuMemcpyBatchAsync, W(&p), W(&q), W(&size), 1, 0, 0, 0, W(&fail), 0);
    BOTH(cuMemcpyBatchAsync_v2, W(&p), W(&q), W(&size), 1, 0, 0, 0, 0);
    BOTH(cuMemcpy3DBatchAsync, 0, 0, W(&fail), 0, 0);
    BOTH(cuMemcpy3DBatchAsync_v2, 0, 0, 0, 0);
    BOTH(cuMemcpyWithAttributesAsync, p, q, MIB, 0, 0);
    BOTH(cuMemcpy3DWithAttributesAsync, 0, 0, 0);
    BOTH(cuMemBatchDecompressAsync, 0, 0, 0, 0, 0);
    C(cuCtxSynchronize, 0);
    C(cuMemFree_v2, p);
    C(cuMemFree_v2, q);
}

static void modules(void)
{
    word m = 0, f = 0, l = 0, k = 0;
    FILE *file = fopen("every_hook.ptx", "we");

    C(cuModuleLoadData, W(&m), W(ptx));
    C(cuModuleGetFunction, W(&f), m, W("empty"));
    C(cuModuleUnload, m);
    C(cuModuleUnload, m);
    C(cuModuleLoadDataEx, W(&m), W(ptx), 0, 0, 0);
    C(cuModuleUnload, m);
    C(cuModuleLoadFatBinary, W(&m), W(ptx));
    C(cuModuleUnload, m);
    C(cuModuleLoad, W(&m), W("there is no such file"));
    if (file) {
        fputs(ptx, file);
        fclose(file);
        if (C(cuModuleLoad, W(&m), W("every_hook.ptx")) == 0)
            C(cuModuleUnload, m);
        if (C(cuLibraryLoadFromFile, W(&l), W("every_hook.ptx"), 0, 0, 0, 0, 0, 0) == 0)
            C(cuLibraryUnload, l);
        remove("every_hook.ptx");
    }
    C(cuLibraryLoadFromFile, W(&l), W("there is no such file"), 0, 0, 0, 0, 0, 0);
    C(cuLibraryLoadData, W(&l), W(ptx), 0, 0, 0, 0, 0, 0);
    C(cuLibraryGetKernel, W(&k), l, W("empty"));
    C(cuLibraryUnload, l);
    C(cuLibraryUnload, 0);
    C(cuModuleLoadData, W(&m), 0);
    C(cuModuleUnload, 0);
}

static void launches(void)
{
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1};
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    word m = 0, f = 0, s = 0, e = 0, g = 0, x = 0;

    C(cuModuleLoadData, W(&m), W(ptx));
    C(cuModuleGetFunction, W(&f), m, W("ns_4000"));
    C(cuStreamCreate, W(&s), 1);
    C(cuEventCreate, W(&e), 0);
    for (int i = 0; i < 3; i++) {
        BOTH(cuLaunchKernel, f, 1, 1, 1, 32, 1, 1, 0, i ? s : 0, 0, 0);
        BOTH(cuLaunchKernelEx, W(&config), f, 0, 0);
        BOTH(cuLaunchCooperativeKernel, f, 1, 1, 1, 32, 1, 1, 0, i ? s : 0, 0);
        C(cuFuncSetBlockShape, f, 1, 1, 1);
        C(cuLaunch, f);
        C(cuLaunchGrid, f, 1, 1);
        C(cuLaunchGridAsync, f, 1, 1, s);
        C(cuEventRecord, e, s);
        C(cuEventSynchronize, e);
        C(cuEventQuery, e);
        BOTH(cuStreamSynchronize, s);
        BOTH(cuStreamQuery, s);
    }
    C(cuLaunchKernel, f, 0, 1, 1, 32, 1, 1, 0, s, 0, 0);
    C(cuLaunchKernel, 0, 1, 1, 1, 32, 1, 1, 0, s, 0, 0);
    C(cuStreamBeginCapture_v2, s, 1);
    C(cuLaunchKernel, f, 1, 1, 1, 32, 1, 1, 0, s, 0, 0);
    C(cuStreamEndCapture, s, W(&g));
    C(cuGraphInstantiateWithFlags, W(&x), g, 0);
    BOTH(cuGraphUpload, x, s);
    BOTH(cuGraphLaunch, x, s);
    C(cuGraphExecDestroy, x);
    C(cuGraphInstantiate_v2, W(&x), g, 0, 0, 0);
    C(cuGraphExecDestroy, x);
    BOTH(cuGraphInstantiateWithParams, W(&x), g, W(&params));
    C(cuGraphExecDestroy, x);
    C(cuGraphDestroy, g);
    C(cuStreamBeginCapture_ptsz, s);
    C(cuStreamBeginCapture_v2_ptsz, s, 1);
    C(cuStreamEndCapture_ptsz, s, W(&g));
    C(cuGraphDestroy, g);
    C(cuGraphCreate, W(&g), 0);
    C(cuStreamBeginCaptureToGraph, s, g, 0, 0, 0, 1);
    C(cuLaunchKernel, f, 1, 1, 1, 32, 1, 1, 0, s, 0, 0);
    C(cuStreamEndCapture, s, W(&g));
    C(cuGraphDestroy, g);
    C(cuGraphLaunch, 0, s);
    C(cuStreamEndCapture, s, W(&g));
    C(cuEventDestroy_v2, e);
    C(cuStreamDestroy_v2, s);
    C(cuModuleUnload, m);
}

/* What holds physical memory beside handles and mappings. */
static void bound(CUmemAllocationProp *prop)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 1024,
                                     .Height = 1024,
                                     .Format = CU_AD_FORMAT_FLOAT,
                                     .NumChannels = 1,
                                     .Flags = CUDA_ARRAY3D_SPARSE};
    CUmulticastObjectProp wanted = {.numDevices = 1, .size = 4 * MIB};
    CUarrayMapInfo tile = {.memOperationType = CU_MEM_OPERATION_TYPE_MAP, .deviceBitMask = 1};
    word h = 0, p = 0, m = 0, fd = 0;

    prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    C(cuMemCreate, W(&h), 4 * MIB, W(prop), 0);
    C(cuArray3DCreate_v2, W(&tile.resource.array), W(&shape));
    tile.memHandle.memHandle = h;
    BOTH(cuMemMapArrayAsync, W(&tile), 1, 0);
    BOTH(cuMemMapArrayAsync, W(&tile), 0, 0);
    BOTH(cuMemMapArrayAsync, 0, 1, 0);
    tile.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    BOTH(cuMemMapArrayAsync, W(&tile), 1, 0);
    C(cuArrayDestroy, W(tile.resource.array));
    C(cuMulticastCreate, W(&m), W(&wanted));
    C(cuMulticastCreate, 0, 0);
    C(cuMulticastAddDevice, m, 0);
    C(cuMemAddressReserve, W(&p), 4 * MIB, 0, 0, 0);
    C(cuMemMap, p, 4 * MIB, 0, h, 0);
    C(cuMulticastBindMem, m, 0, h, 0, 4 * MIB, 0);
    C(cuMulticastUnbind, m, 0, 0, 4 * MIB);
    C(cuMulticastUnbind, m, 0, 0, 4 * MIB);
    C(cuMulticastBindMem_v2, m, 0, 0, h, 0, 4 * MIB, 0);
    C(cuMulticastBindMem_v2, m, 0, 0, 77, 0, 4 * MIB, 0);
    C(cuMulticastUnbind, m, 0, 0, 4 * MIB);
    C(cuMulticastBindAddr, m, 0, p, 4 * MIB, 0);
    C(cuMulticastBindAddr, m, 0, 0, 4 * MIB, 0);
    C(cuMulticastUnbind, m, 0, 0, 4 * MIB);
    C(cuMulticastBindAddr_v2, m, 0, 0, p, 4 * MIB, 0);
    C(cuMemUnmap, p, 4 * MIB);
    C(cuMemAddressFree, p, 4 * MIB);
    C(cuMemExportToShareableHandle, W(&fd), h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    C(cuMemExportToShareableHandle, 0, 77, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    C(cuMemRelease, h);
    C(cuMemRelease, m);
    close((int)fd);
}

static void pools(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    word pool = 0, p = 0, h = 0, again = 0, threshold = 64 * MIB;

    C(cuMemPoolCreate, W(&pool), W(&props));
    BOTH(cuMemAllocFromPoolAsync, W(&p), MIB, pool, 0);
    BOTH(cuMemAllocAsync, W(&p), MIB, 0);
    C(cuMemFreeAsync, p, 0);
    BOTH(cuMemAllocAsync, W(&p), MIB, 0);
    C(cuMemFreeAsync_ptsz, p, 0);
    C(cuMemPoolSetAttribute, pool, 4, W(&threshold));
    C(cuMemPoolTrimTo, pool, 0);
    C(cuMemPoolDestroy, pool);
    C(cuMemPoolCreate, W(&pool), 0);
    C(cuDeviceGraphMemTrim, 0);
    C(cuMemCreate, W(&h), 4 * MIB, W(&prop), 0);
    C(cuMemAddressReserve, W(&p), 8 * MIB, 0, 0, 0);
    C(cuMemMap, p, 4 * MIB, 0, h, 0);
    C(cuMemRetainAllocationHandle, W(&again), p);
    C(cuMemRelease, again);
    C(cuMemRelease, h);
    C(cuMemUnmap, p, 4 * MIB);
    C(cuMemUnmap, p, 4 * MIB);
    C(cuMemAddressFree, p, 8 * MIB);
    C(cuMemCreate, W(&h), 12345, W(&prop), 0);
    C(cuMemRelease, 77);
    bound(&prop);
    C(cuCtxSynchronize, 0);
}

static void contexts(void)
{
    CUdevResource whole, part[2], rest;
    word one = 0, two = 0, popped = 0, desc = 0, green = 0, stream = 0;
    unsigned n = 2;

    C(cuCtxCreate_v2, W(&one), 0, 0);
    C(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 4096);
    C(cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 16 * MIB);
    C(cuCtxSetLimit, CU_LIMIT_PRINTF_FIFO_SIZE, 2 * MIB);
    C(cuCtxSetLimit, 999, 1);
    C(cuCtxPopCurrent_v2, W(&popped));
    C(cuCtxPushCurrent_v2, popped);
    C(cuCtxCreate, W(&two), 0, 0);
    C(cuCtxDestroy, two);
    C(cuCtxCreate_v3, W(&two), 0, 0, 0, 0);
    C(cuCtxDestroy_v2, two);
    C(cuCtxCreate_v4, W(&two), 0, 0, 0);
    C(cuCtxSynchronize_v2, two);
    C(cuCtxPopCurrent, W(&popped));
    C(cuCtxPushCurrent, two);
    C(cuCtxDestroy_v2, two);
    C(cuCtxCreate_v2, W(&two), 0, 99);
    C(cuCtxDestroy_v2, one);
    C(cuCtxDestroy_v2, 0);
    C(cuDevicePrimaryCtxRetain, W(&one), 0);
    C(cuDevicePrimaryCtxReset_v2, 0);
    C(cuDevicePrimaryCtxReset, 0);
    C(cuDevicePrimaryCtxRetain, W(&one), 0);
    C(cuDevicePrimaryCtxRelease_v2, 0);
    C(cuDevicePrimaryCtxRelease, 0);
    C(cuDevicePrimaryCtxRelease_v2, 0);
    C(cuDevicePrimaryCtxRetain, W(&one), 0);
    C(cuCtxSetCurrent, one);
    if (C(cuDeviceGetDevResource, 0, W(&whole), CU_DEV_RESOURCE_TYPE_SM) == 0 &&
        C(cuDevSmResourceSplitByCount, W(part), W(&n), W(&whole), W(&rest), 0, 16) == 0 &&
        C(cuDevResourceGenerateDesc, W(&desc), W(part), 1) == 0 &&
        C(cuGreenCtxCreate, W(&green), desc, 0, 1) == 0) {
        C(cuCtxFromGreenCtx, W(&two), green);
        C(cuGreenCtxStreamCreate, W(&stream), green, 1, 0);
        C(cuStreamDestroy_v2, stream);
        C(cuGreenCtxDestroy, green);
    }
    C(cuGreenCtxDestroy, 0);
}

int main(void)
{
    size_t free_ = 0, total = 0;

    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library || C(cuInit, 0))
        return 2;
    contexts();
    memory();
    of_the_host();
    of_old();
    between();
    modules();
    launches();
    pools();
    C(cuMemGetInfo_v2, W(&free_), W(&total));
    printf("used %lu\n", (unsigned long)(total - free_));
    return 0;
}

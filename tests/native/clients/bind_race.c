/* Threads bind physical memory to arrays and multicast objects or export it, let its handle go, and
 * end what holds it in turn, at a limit that only some of them find room in. Prints how often they
 * did. */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define ROUNDS 400
#define THREADS 4
#define BYTES (2u << 20)

static CUcontext context;
static _Atomic int held, failed;

static CUresult array_round(CUmemGenericAllocationHandle memory, int unmap)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 1024,
                                     .Height = 1024,
                                     .Format = CU_AD_FORMAT_FLOAT,
                                     .NumChannels = 1,
                                     .Flags = CUDA_ARRAY3D_SPARSE};
    CUarrayMapInfo tile = {.memOperationType = CU_MEM_OPERATION_TYPE_MAP,
                           .deviceBitMask = 1,
                           .memHandle.memHandle = memory};
    CUresult made = cuArray3DCreate(&tile.resource.array, &shape);
    CUresult bound = made ? made : cuMemMapArrayAsync(&tile, 1, NULL);
    CUresult result = cuMemRelease(memory);
    tile.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    tile.memHandle.memHandle = 0;
    if (!bound && unmap && cuMemMapArrayAsync(&tile, 1, NULL))
        return CUDA_ERROR_UNKNOWN;
    return made ? made : bound | result | cuArrayDestroy(tile.resource.array);
}

static CUresult multicast_round(CUmemGenericAllocationHandle memory, int unbind)
{
    CUmulticastObjectProp wanted = {.numDevices = 1, .size = BYTES};
    CUmemGenericAllocationHandle object;
    CUresult result = cuMulticastCreate(&object, &wanted);
    if (result)
        return result;
    result = cuMulticastAddDevice(object, 0) | cuMulticastBindMem(object, 0, memory, 0, BYTES, 0) |
             cuMemRelease(memory);
    if (unbind)
        result |= cuMulticastUnbind(object, 0, 0, BYTES);
    return result | cuMemRelease(object);
}

static CUresult export_round(CUmemGenericAllocationHandle memory, int import)
{
    int fd;
    CUresult result =
        cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result)
        return result;
    result = cuMemRelease(memory);
    if (import)
        result |= cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)fd,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(fd);
    return import && !result ? cuMemRelease(memory) : result;
}

static void *work(void *first)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .requestedHandleTypes =
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUresult (*const kinds[])(CUmemGenericAllocationHandle, int) = {array_round, multicast_round,
                                                                    export_round};
    cuCtxSetCurrent(context);
    for (int round = 0; round < ROUNDS; round++) {
        CUmemGenericAllocationHandle memory;
        if (cuMemCreate(&memory, BYTES, &property, 0))
            continue;
        CUresult result = kinds[(round + *(int *)first) % 3](memory, round / 3 % 2);
        if (result)
            atomic_store(&failed, (int)result);
        atomic_fetch_add(&held, 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    int first[THREADS];
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    for (int i = 0; i < THREADS; i++) {
        first[i] = i;
        if (pthread_create(&thread[i], NULL, work, &first[i]))
            return 1;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    if (failed || cuCtxSynchronize())
        return 2;
    printf("%d\n", held);
    fflush(stdout);
    getchar();
    return 0;
}

/* A training loop that runs out of memory, frees and retries: goes_on alloc|vmm|async CYCLES.
 *
 * Each cycle takes blocks of 256 MiB until one is refused, as a caching allocator does: it then
 * gives everything back (its cache is empty), launches a kernel and waits for it. Prints the cycles
 * gone through and the least and most blocks that fit in one.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK (256ull << 20)
#define MOST 1024

static CUdeviceptr held[MOST];
static CUmemGenericAllocationHandle handles[MOST];

static CUresult take(char how, int i)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result;

    if (how == 'a')
        return cuMemAlloc(&held[i], BLOCK);
    if (how == 's')
        return cuMemAllocAsync(&held[i], BLOCK, NULL);
    if ((result = cuMemCreate(&handles[i], BLOCK, &prop, 0)))
        return result;
    if (cuMemAddressReserve(&held[i], BLOCK, 0, 0, 0) ||
        cuMemMap(held[i], BLOCK, 0, handles[i], 0) || cuMemSetAccess(held[i], BLOCK, &access, 1))
        exit(3);
    return CUDA_SUCCESS;
}

static int give(char how, int i)
{
    if (how == 'a')
        return cuMemFree(held[i]) == CUDA_SUCCESS;
    if (how == 's')
        return cuMemFreeAsync(held[i], NULL) == CUDA_SUCCESS;
    return cuMemUnmap(held[i], BLOCK) == CUDA_SUCCESS &&
           cuMemAddressFree(held[i], BLOCK) == CUDA_SUCCESS &&
           cuMemRelease(handles[i]) == CUDA_SUCCESS;
}

int main(int argc, char **argv)
{
    char how = argc > 1 && !strcmp(argv[1], "alloc") ? 'a'
               : argc > 1 && !strcmp(argv[1], "vmm") ? 'v'
                                                     : 's';
    int cycles = argc > 2 ? atoi(argv[2]) : 50, done = 0, least = MOST, most = 0;
    static char image[] = ".version 6.0\n.target sm_50\n.address_size 64\n";
    CUmemoryPool pool;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;

    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, image) || cuModuleGetFunction(&kernel, module, "ns_20000"))
        return 2;
    for (; done < cycles; done++) {
        CUresult result;
        int n = 0;
        while (n < MOST && (result = take(how, n)) == CUDA_SUCCESS)
            n++;
        if (result != CUDA_ERROR_OUT_OF_MEMORY)
            break;
        least = n < least ? n : least;
        most = n > most ? n : most;
        while (n && give(how, n - 1))
            n--;
        if (n || cuCtxSynchronize())
            break;
        if (how == 's' && (cuDeviceGetDefaultMemPool(&pool, 0) || cuMemPoolTrimTo(pool, 0)))
            break;
        if (cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) || cuCtxSynchronize())
            break;
    }
    printf("%d %d %d\n", done, least, most);
    return 0;
}

/* Allocates and frees at random by several paths until told to stop, or until it is killed.
 * memory_race SECONDS SEED [MOST_BYTES [THREADS]]: prints how many calls it made. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MOST 64
static __thread unsigned long long state;
static double seconds;
static size_t most = 64 << 20;
static CUcontext context;
static unsigned long long draw(unsigned long long below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % below;
}

static CUresult make(int kind, CUdeviceptr *out, size_t bytes)
{
    CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}};
    CUDA_ARRAY3D_DESCRIPTOR d = {
        .Width = bytes / 4096 + 1, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    switch (kind) {
    case 0: return cuMemAlloc(out, bytes);
    case 1: return cuMemAlloc(out, bytes % 4096 + 1);
    case 2: return cuMemAllocAsync(out, bytes, NULL);
    case 3: return cuMemCreate(out, (bytes + (2 << 20) - 1) >> 21 << 21, &p, 0);
    case 4: return cuArray3DCreate((CUarray *)out, &d);
    case 5: { /* held by a descriptor alone */
        int fd;
        p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        CUresult r = cuMemCreate(out, 2 << 20, &p, 0);
        if (r)
            return r;
        r = cuMemExportToShareableHandle(&fd, *out, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        cuMemRelease(*out);
        *out = (CUdeviceptr)fd + 1;
        return r;
    }
    default: return cuMemAllocManaged(out, bytes, CU_MEM_ATTACH_GLOBAL);
    }
}

static CUresult end(int kind, CUdeviceptr it)
{
    switch (kind) {
    case 2: return cuMemFreeAsync(it, NULL);
    case 3: return cuMemRelease(it);
    case 4: return cuArrayDestroy((CUarray)it);
    case 5: return close((int)it - 1) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
    default: return cuMemFree(it);
    }
}

/* Returns how many calls it made; negative: something failed that may not. */
static void *work(void *seed)
{
    CUdeviceptr held[MOST] = {0};
    int kind[MOST];
    long calls = 0;
    struct timespec now, begun;
    state = (unsigned long long)seed * 7919 + 1;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    CUresult r = cuCtxSetCurrent(context);
    do {
        for (int i = 0; i < 100; i++, calls++) {
            int at = (int)draw(MOST);
            if (held[at]) {
                if ((r = end(kind[at], held[at]))) {
                    printf("freeing kind %d: %d\n", kind[at], r);
                    return (void *)-1;
                }
                held[at] = 0;
            } else {
                kind[at] = (int)draw(7);
                r = make(kind[at], &held[at], draw(most) + 1);
                if (r)
                    held[at] = 0;
                if (r && r != CUDA_ERROR_OUT_OF_MEMORY) {
                    printf("making kind %d: %d\n", kind[at], r);
                    return (void *)-1;
                }
            }
        }
        if (draw(20) == 0)
            cuCtxSynchronize();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - begun.tv_sec) + 1e-9 * (double)(now.tv_nsec - begun.tv_nsec) <
             seconds);
    for (int at = 0; at < MOST; at++)
        if (held[at] && end(kind[at], held[at]))
            return (void *)-1;
    return (void *)calls;
}

int main(int argc, char **argv)
{
    pthread_t thread[64];
    if (argc < 3)
        return 2;
    seconds = atof(argv[1]);
    unsigned long long seed = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        most = strtoull(argv[3], NULL, 10);
    int threads = argc > 4 ? atoi(argv[4]) : 1;
    CUresult r = cuInit(0);
    if (!r)
        r = cuDevicePrimaryCtxRetain(&context, 0);
    if (r) {
        printf("no context: %d\n", r);
        return r == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 1;
    }
    for (int i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, work, (void *)(seed * 64 + (unsigned long long)i));
    long calls = 0;
    for (int i = 0; i < threads; i++) {
        void *made;
        pthread_join(thread[i], &made);
        if ((long)made < 0)
            return 1;
        calls += (long)made;
    }
    printf("%ld\n", calls);
    return 0;
}

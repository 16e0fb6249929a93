/* What memory costs a program, and what its limiter lets through:
 *
 *     memory_cost cost LIVE ROUNDS   with so many live allocations of 4 KiB: prints the median of an
 *                                    allocation and free of 1 MiB, nanoseconds
 *     memory_cost path NAME BYTES    takes pieces of 16 MiB that way until refused, or until it has
 *                                    so many bytes; prints how many it was given
 *     memory_cost beyond ROOM ROUNDS what memory beyond a slice with ROOM bytes costs: prints the
 *                                    median of an allocation and free of 1 MiB within it and beyond,
 *                                    nanoseconds, and the speed of a copy of 16 MiB there by the
 *                                    GPU's own time, GB/s
 *
 * NAME: alloc, pitch, managed, async, create, array, mipmap. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PIECE (16u << 20)
#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "memory_cost: %s gave %d\n", #call, result_);                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int cost(int live, int rounds)
{
    CUdeviceptr one;
    double *took = malloc((size_t)rounds * sizeof *took);
    if (!took || rounds < 1)
        return 2;
    for (int i = 0; i < live; i++)
        CHECK(cuMemAlloc(&one, 4096));
    for (int i = 0; i < rounds; i++) {
        double begun = now();
        CHECK(cuMemAlloc(&one, 1 << 20));
        CHECK(cuMemFree(one));
        took[i] = now() - begun;
    }
    qsort(took, (size_t)rounds, sizeof *took, by_value);
    printf("%.1f\n", took[rounds / 2]);
    return 0;
}

static double allocation(double *took, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        CUdeviceptr one;
        double begun = now();
        CHECK(cuMemAlloc(&one, 1 << 20));
        CHECK(cuMemFree(one));
        took[i] = now() - begun;
    }
    qsort(took, (size_t)rounds, sizeof *took, by_value);
    return took[rounds / 2];
}

/* By the GPU's time, for the host may be at work on other things. */
static double copy(CUdeviceptr both, double *took, int rounds)
{
    CUevent from, to;
    CHECK(cuEventCreate(&from, 0));
    CHECK(cuEventCreate(&to, 0));
    for (int i = 0; i < rounds; i++) {
        float ms;
        CHECK(cuEventRecord(from, NULL));
        CHECK(cuMemcpyDtoDAsync(both + PIECE, both, PIECE, NULL));
        CHECK(cuEventRecord(to, NULL));
        CHECK(cuEventSynchronize(to));
        CHECK(cuEventElapsedTime(&ms, from, to));
        took[i] = (double)ms * 1e6;
    }
    qsort(took, (size_t)rounds, sizeof *took, by_value);
    return PIECE / took[rounds / 2];
}

static int beyond(size_t room, int rounds)
{
    double *took = malloc((size_t)rounds * sizeof *took), within, speed;
    CUdeviceptr both, rest, other;
    if (!took || rounds < 1 || room < 3 * PIECE)
        return 2;
    CHECK(cuMemAlloc(&both, 2 * PIECE));
    within = allocation(took, rounds);
    speed = copy(both, took, rounds / 10 + 1);
    CHECK(cuMemAlloc(&rest, room - 2 * PIECE)); /* the slice is full */
    CHECK(cuMemAlloc(&other, 2 * PIECE));
    printf("%.1f %.1f ", within, allocation(took, rounds));
    printf("%.2f %.2f\n", speed, copy(other, took, rounds / 10 + 1));
    return 0;
}

static CUresult take(const char *name)
{
    CUdeviceptr at;
    size_t pitch;
    CUmipmappedArray mipmap;
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR flat = {
        .Width = 4096, .Height = PIECE / 4096 / 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}};
    CUmemGenericAllocationHandle handle;
    if (!strcmp(name, "alloc"))
        return cuMemAlloc(&at, PIECE);
    if (!strcmp(name, "pitch"))
        return cuMemAllocPitch(&at, &pitch, 4096, PIECE / 4096, 16);
    if (!strcmp(name, "managed"))
        return cuMemAllocManaged(&at, PIECE, CU_MEM_ATTACH_GLOBAL);
    if (!strcmp(name, "async"))
        return cuMemAllocAsync(&at, PIECE, NULL);
    if (!strcmp(name, "create"))
        return cuMemCreate(&handle, PIECE, &property, 0);
    if (!strcmp(name, "array"))
        return cuArray3DCreate(&array, &flat);
    if (!strcmp(name, "mipmap"))
        return cuMipmappedArrayCreate(&mipmap, &flat, 1);
    fprintf(stderr, "memory_cost: there is no path %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    CUcontext context;
    if (argc < 4)
        return 2;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    if (!strcmp(argv[1], "cost"))
        return cost(atoi(argv[2]), atoi(argv[3]));
    if (!strcmp(argv[1], "beyond"))
        return beyond(strtoull(argv[2], NULL, 10), atoi(argv[3]));
    unsigned long long most = strtoull(argv[3], NULL, 10), given = 0;
    while (given < most && take(argv[2]) == CUDA_SUCCESS)
        given += PIECE;
    printf("%llu\n", given);
    return 0;
}

/* What a kernel launch costs the host: on each line of stdin, a number N, it launches N times 256
 * empty kernels, waits for the GPU after each 256, and prints the median of their times in ns. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH 256
#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "launch_cost: %s gave %d\n", #call, result_);                          \
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

int main(void)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUstream stream;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, "//\n.version 8.0\n.target sm_70\n.address_size 64\n"));
    CHECK(cuModuleGetFunction(&function, module, "empty"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    char line[32];
    while (fgets(line, sizeof line, stdin)) {
        int n = atoi(line);
        double *cost = malloc((size_t)n * sizeof *cost);
        if (n < 1 || !cost)
            return 2;
        for (int i = 0; i < n; i++) {
            double begun = now();
            for (int k = 0; k < BATCH; k++)
                CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
            cost[i] = (now() - begun) / BATCH;
            CHECK(cuStreamSynchronize(stream));
        }
        qsort(cost, (size_t)n, sizeof *cost, by_value);
        printf("%.2f\n", cost[n / 2]);
        fflush(stdout);
        free(cost);
    }
    return 0;
}

/* What a kernel launch costs the host:
 *
 *     launch_cost [THREADS [STREAMS]]
 *
 * On each line of stdin, a number N, each of its threads launches N times 256 empty kernels, into its
 * streams by turns, and waits for the GPU after each 256; all threads at once. It prints the median
 * of their times in ns. */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH 256
#define MOST 64
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

static CUcontext context;
static CUfunction function;
static int n_threads = 1, n_streams = 1, n_batches;
static double *costs; /* a row of batches for each thread */
static pthread_barrier_t begin, end;

static void measure(int thread, const CUstream *streams)
{
    for (int i = 0; i < n_batches; i++) {
        int at = 0;
        double begun = now();
        for (int k = 0; k < BATCH; k++) {
            CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, streams[at], NULL, NULL));
            at = at + 1 < n_streams ? at + 1 : 0;
        }
        costs[thread * n_batches + i] = (now() - begun) / BATCH;
        for (int k = 0; k < n_streams; k++)
            CHECK(cuStreamSynchronize(streams[k]));
    }
}

static void make(CUstream *streams)
{
    CHECK(cuCtxSetCurrent(context));
    for (int k = 0; k < n_streams; k++)
        CHECK(cuStreamCreate(&streams[k], CU_STREAM_NON_BLOCKING));
}

static void *run(void *thread)
{
    CUstream streams[MOST];
    make(streams);
    for (;;) {
        pthread_barrier_wait(&begin);
        measure((int)(intptr_t)thread, streams);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUmodule module;
    CUstream streams[MOST];
    if (argc > 1)
        n_threads = atoi(argv[1]);
    if (argc > 2)
        n_streams = atoi(argv[2]);
    if (n_threads < 1 || n_streams < 1 || n_streams > MOST)
        return 2;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, "//\n.version 8.0\n.target sm_70\n.address_size 64\n"));
    CHECK(cuModuleGetFunction(&function, module, "empty"));
    make(streams);
    pthread_barrier_init(&begin, NULL, (unsigned)n_threads);
    pthread_barrier_init(&end, NULL, (unsigned)n_threads);
    for (intptr_t i = 1; i < n_threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, (void *)i))
            return 2;
    }
    char line[32];
    while (fgets(line, sizeof line, stdin)) {
        n_batches = atoi(line);
        size_t n = (size_t)n_batches * (size_t)n_threads;
        costs = malloc(n * sizeof *costs);
        if (n_batches < 1 || !costs)
            return 2;
        pthread_barrier_wait(&begin);
        measure(0, streams);
        pthread_barrier_wait(&end);
        qsort(costs, n, sizeof *costs, by_value);
        printf("%.2f\n", costs[n / 2]);
        fflush(stdout);
        free(costs);
    }
    _Exit(0); /* the other threads wait for the next line */
}

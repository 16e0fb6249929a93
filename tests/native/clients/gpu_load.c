/* A load on the GPU for tests and benchmarks of compute shares:
 *
 *     gpu_load KIND SECONDS [BEGIN [ARRIVALS]]
 *
 * KIND  kernel:NAME[:N[:BLOCKS]]  (BLOCKS of each kind's grids: 100)
 *                        launches the kernel, and waits for the GPU after every N launches (default
 *                        0: never); NAME as in native/fakegpu/fakegpu.h
 *       streams:NAME:N   launches the kernel in N streams in turn
 *       ddp:NAME:N       a training's steps: N launches, and after each quarter of them a kernel of 2 ms
 *                        on a sixth of the SMs in another stream, for which the next step waits
 *       graph:NAME:N     launches a captured graph of N such kernels
 *       infer:NAME:N     requests of N launches and a wait, ARRIVALS a second on average (Poisson)
 * BEGIN seconds until it begins. It works for SECONDS of the GPUs' time after that, waits for the
 * GPU, and prints a line of JSON: launches, and for requests the latencies in microseconds. */
#include <cuda.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern uint64_t fakegpu_now_ns(void);
extern void fakegpu_sleep_until_ns(uint64_t when);

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "gpu_load: %s gave %d\n", #call, result_);                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static CUfunction function;
static CUstream stream;
static uint64_t launches;
static unsigned blocks = 100;

static void launch(int n)
{
    for (int i = 0; i < n; i++)
        CHECK(cuLaunchKernel(function, blocks, 1, 1, 128, 1, 1, 0, stream, NULL, NULL));
    launches += (uint64_t)n;
}

static void kernels(uint64_t end, int n)
{
    for (uint64_t i = 1; fakegpu_now_ns() < end; i++) {
        launch(1);
        if (n && i % (uint64_t)n == 0)
            CHECK(cuStreamSynchronize(stream));
    }
}

static void streams(uint64_t end, int n)
{
    CUstream its[16];
    for (int i = 0; i < n; i++)
        CHECK(cuStreamCreate(&its[i], CU_STREAM_NON_BLOCKING));
    for (uint64_t i = 0; fakegpu_now_ns() < end; i++) {
        stream = its[i % (uint64_t)n];
        launch(1);
    }
}

static void steps(CUmodule module, uint64_t end, int n)
{
    CUfunction compute = function, reduce;
    CUstream main_stream, side;
    CUevent ready, reduced;
    CHECK(cuModuleGetFunction(&reduce, module, "ns_2000000_j20_sm22"));
    CHECK(cuStreamCreate(&main_stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&reduced, CU_EVENT_DISABLE_TIMING));
    while (fakegpu_now_ns() < end) {
        for (int quarter = 0; quarter < 4; quarter++) {
            function = compute, stream = main_stream;
            launch(n / 4);
            CHECK(cuEventRecord(ready, main_stream));
            CHECK(cuStreamWaitEvent(side, ready, 0));
            function = reduce, stream = side;
            launch(1);
        }
        CHECK(cuEventRecord(reduced, side));
        CHECK(cuStreamWaitEvent(main_stream, reduced, 0));
    }
}

static void graphs(uint64_t end, int n)
{
    CUgraph graph;
    CUgraphExec exec;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(n);
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (launches = 0; fakegpu_now_ns() < end; launches++)
        CHECK(cuGraphLaunch(exec, stream));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void requests(uint64_t end, int n, double rate, unsigned short seed[3])
{
    size_t capacity = 1 << 20, count = 0;
    double *latency = malloc(capacity * sizeof *latency), sum = 0;
    uint64_t arrives = fakegpu_now_ns();
    while (count < capacity) {
        arrives += (uint64_t)(-log(1 - erand48(seed)) / rate * 1e9);
        if (arrives >= end)
            break;
        if (fakegpu_now_ns() < arrives)
            fakegpu_sleep_until_ns(arrives);
        launch(n);
        CHECK(cuStreamSynchronize(stream));
        /* with its time in the queue */
        latency[count] = (double)(fakegpu_now_ns() - arrives) / 1e3;
        sum += latency[count++];
    }
    qsort(latency, count, sizeof *latency, by_value);
    if (count)
        printf("{\"launches\": %llu, \"requests\": %zu, \"mean_us\": %.1f, \"p50_us\": %.1f, "
               "\"p99_us\": %.1f}\n",
               (unsigned long long)launches, count, sum / (double)count, latency[count / 2],
               latency[count * 99 / 100]);
    free(latency);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    char *kind = strtok(argv[1], ":"), *name = strtok(NULL, ":"), *number = strtok(NULL, ":");
    char *grid = number ? strtok(NULL, ":") : NULL;
    if (grid)
        blocks = (unsigned)atoi(grid);
    int n = number ? atoi(number) : 0;
    double seconds = atof(argv[2]), begin = argc > 3 ? atof(argv[3]) : 0,
           rate = argc > 4 ? atof(argv[4]) : 10;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, "//\n.version 8.0\n.target sm_70\n.address_size 64\n"));
    CHECK(cuModuleGetFunction(&function, module, name));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    uint64_t from = fakegpu_now_ns() + (uint64_t)(begin * 1e9),
             end = from + (uint64_t)(seconds * 1e9);
    if (begin > 0)
        fakegpu_sleep_until_ns(from);
    if (!strcmp(kind, "kernel"))
        kernels(end, n);
    else if (!strcmp(kind, "streams"))
        streams(end, n);
    else if (!strcmp(kind, "ddp"))
        steps(module, end, n);
    else if (!strcmp(kind, "graph"))
        graphs(end, n);
    else if (!strcmp(kind, "infer"))
        requests(
            end, n, rate,
            (unsigned short[3]){1, 2, (unsigned short)atoi(getenv("SEED") ? getenv("SEED") : "3")});
    else
        return 2;
    CHECK(cuCtxSynchronize());
    if (strcmp(kind, "infer"))
        printf("{\"launches\": %llu}\n", (unsigned long long)launches);
    return 0;
}

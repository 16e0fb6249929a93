/* Loads of the compute tests: load KIND SECONDS [STEPS_PER_NS]; one line of JSON at the end.
 *
 *   calibrate       the speed of the kernels and the costs that a profile of the fake needs
 *   empty           launches of nothing: what a launch costs
 *   tiny big long   kernels of 4 us back to back; of 5 ms; of 50 ms, each followed by a wait
 *   graph           one graph of 20 kernels of 1 ms, launched again and again
 *   wake            idle for half of the time, then big
 *
 * work: nominal seconds of GPU time completed, after SETTLE; per window of 100 ms in `windows`.
 */
#include "driver.h"

#include <math.h>
#include <unistd.h>

#define SETTLE 0.25          /* of the whole time, at most 2 s, is not counted */
#define WINDOW 0.1
#define MOST_WINDOWS 4096
#define QUEUE 256            /* launches that are not waited for */

static struct gpu gpu;
static double windows[MOST_WINDOWS];

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void empty(double seconds)
{
    enum { BATCH = 500, MOST = 20000 };
    static double batches[MOST], each[MOST];
    CUfunction f = gpu_kernel(&gpu, "empty");
    uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
    int n = 0, m = 0;

    while (now_ns() < end && n < MOST) {
        uint64_t from = now_ns();
        for (int i = 0; i < BATCH; i++)
            must(gpu_launch(&gpu, f, 0, NULL), "launch");
        batches[n++] = (double)(now_ns() - from) / BATCH;
        MUST(cuCtxSynchronize, );
        for (int i = 0; i < 32 && m < MOST; i++) { /* alone: for the tail */
            from = now_ns();
            must(gpu_launch(&gpu, f, 0, NULL), "launch");
            each[m++] = (double)(now_ns() - from);
        }
        MUST(cuCtxSynchronize, );
    }
    qsort(batches, (size_t)n, sizeof *batches, by_size);
    qsort(each, (size_t)m, sizeof *each, by_size);
    printf("{\"ns_per_launch\": %.1f, \"p999_ns\": %.0f, \"launches\": %d}\n", batches[n / 2],
           each[(int)(m * 0.999)], n * BATCH);
}

static CUgraphExec graph_of(CUfunction f, CUstream stream)
{
    CUgraph graph;
    CUgraphExec exec;

    MUST(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    for (int i = 0; i < 20; i++)
        must(gpu_launch(&gpu, f, 1000000, stream), "launch");
    MUST(cuStreamEndCapture, stream, &graph);
    MUST(cuGraphInstantiateWithFlags, &exec, graph, 0);
    MUST(cuGraphDestroy, graph);
    return exec;
}

static void work(const char *kind, double seconds)
{
    int tiny = !strcmp(kind, "tiny"), lengthy = !strcmp(kind, "long"), graph = !strcmp(kind, "graph");
    uint64_t ns = tiny ? 4000 : lengthy ? 50000000 : graph ? 20000000 : 5000000;
    int chunk = tiny ? QUEUE : 1, last = 0;
    CUfunction f = gpu_kernel(&gpu, tiny ? "ns_4000" : lengthy ? "ns_50000000" : graph ? "ns_1000000" : "ns_5000000");
    double settle = fmin(seconds * SETTLE, 2), counted = 0, first = 0, final = 0;
    CUgraphExec exec = NULL;
    CUstream stream;
    CUevent done[2];
    uint64_t from;

    MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    MUST(cuEventCreate, &done[0], CU_EVENT_DISABLE_TIMING);
    MUST(cuEventCreate, &done[1], CU_EVENT_DISABLE_TIMING);
    if (graph)
        exec = graph_of(f, stream);
    from = now_ns();
    if (!strcmp(kind, "wake"))
        while ((double)(now_ns() - from) / 1e9 < seconds / 2)
            usleep(10000);
    for (uint64_t round = 0;; round++) {
        double at;
        int window;
        for (int i = 0; i < chunk; i++)
            must(graph ? F(cuGraphLaunch)(exec, stream) : gpu_launch(&gpu, f, ns, stream), "launch");
        MUST(cuEventRecord, done[round & 1], stream);
        if (lengthy)
            MUST(cuCtxSynchronize, );
        else if (round) /* the chunk before this one: the GPU always has one to go on with */
            MUST(cuEventSynchronize, done[(round - 1) & 1]);
        else
            continue;
        at = (double)(now_ns() - from) / 1e9;
        window = (int)(at / WINDOW);
        if (window < MOST_WINDOWS)
            windows[window] += (double)ns * chunk / 1e9, last = window;
        if (at >= settle && !first)
            first = at;
        else if (first)
            counted += (double)ns * chunk / 1e9, final = at;
        if (at >= seconds)
            break;
    }
    printf("{\"work_s\": %.6f, \"over_s\": %.6f, \"windows\": [", counted, final - first);
    for (int i = 0; i <= last; i++)
        printf("%s%.4f", i ? ", " : "", windows[i]);
    printf("]}\n");
}

/* What the fake's profile wants to know of this machine; `bytes` are what the driver says. */
static void calibrate(void)
{
    size_t before, after, total;
    double launch, pair;
    CUfunction f = gpu_kernel(&gpu, "empty");
    CUevent a, b;
    CUdeviceptr p;
    uint64_t from;
    int sms, version;
    char name[256];

    MUST(cuDeviceGetName, name, sizeof name, gpu.device);
    MUST(cuDriverGetVersion, &version);
    MUST(cuDeviceGetAttribute, &sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device);
    MUST(cuMemGetInfo, &before, &total);
    MUST(cuMemAlloc, &p, 1);
    MUST(cuMemGetInfo, &after, &total);
    MUST(cuMemFree, p);
    MUST(cuEventCreate, &a, 0);
    MUST(cuEventCreate, &b, 0);
    for (int i = 0; i < 200; i++)
        must(gpu_launch(&gpu, f, 0, NULL), "launch");
    MUST(cuCtxSynchronize, );
    from = now_ns();
    for (int i = 0; i < 500; i++)
        must(gpu_launch(&gpu, f, 0, NULL), "launch");
    launch = (double)(now_ns() - from) / 500;
    MUST(cuCtxSynchronize, );
    from = now_ns();
    for (int i = 0; i < 500; i++) {
        MUST(cuEventRecord, a, NULL);
        MUST(cuEventRecord, b, NULL);
    }
    pair = (double)(now_ns() - from) / 500;
    MUST(cuCtxSynchronize, );
    printf("{\"name\": \"%s\", \"cuda\": %d, \"sms\": %d, \"total\": %lu, \"free_with_context\": %lu, "
           "\"block\": %lu, \"launch_ns\": %.0f, \"event_pair_ns\": %.0f, \"steps_per_ns\": %.4f}\n",
           name, version, sms, (unsigned long)total, (unsigned long)before,
           (unsigned long)(before - after), launch, pair, gpu.steps_per_ns);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "load KIND SECONDS [STEPS_PER_NS]\n");
        return 2;
    }
    gpu_open(&gpu, 1);
    if (argc > 3)
        gpu.steps_per_ns = strtod(argv[3], NULL); /* measured once, without limits and neighbours */
    else if (!strcmp(argv[1], "calibrate"))
        gpu_calibrate(&gpu);
    if (!strcmp(argv[1], "calibrate"))
        calibrate();
    else if (!strcmp(argv[1], "empty"))
        empty(strtod(argv[2], NULL));
    else
        work(argv[1], strtod(argv[2], NULL));
    return 0;
}

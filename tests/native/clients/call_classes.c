/* Makes a known number of calls of each class, from two threads, says "done", and waits for stdin
 * to end; then more launches than the limit can hold, captured into a graph that is never
 * launched. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "call_classes: %s gave %d\n", #call, result_);                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static CUcontext context;
static CUfunction function;
static CUgraphExec exec;
static pthread_mutex_t graphs = PTHREAD_MUTEX_INITIALIZER;

static void launch(CUstream stream, int n)
{
    for (int i = 0; i < n; i++)
        CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

static void *work(void *unused)
{
    (void)unused;
    CUdeviceptr a, b;
    char host[4096] = {0}; /* of this thread */
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc(&a, 4096));
    CHECK(cuMemAlloc(&b, 4096));
    for (int i = 0; i < 10; i++) {
        CHECK(cuMemcpyHtoD(a, host, 1000));
        CHECK(cuMemcpyDtoD(b, a, 200));
        CHECK(cuMemcpyDtoH(host, b, 30));
        CHECK(cuMemsetD32(a, 7, 100));
    }
    launch(NULL, 101);
    pthread_mutex_lock(&graphs); /* threads may not launch the same one at once */
    for (int i = 0; i < 3; i++)
        CHECK(cuGraphLaunch(exec, NULL));
    pthread_mutex_unlock(&graphs);
    CUevent event;
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventRecord(event, NULL));
    CHECK(cuCtxSynchronize());
    CHECK(cuEventQuery(event));
    CHECK(cuEventDestroy(event));
    launch(NULL, 5); /* told when the thread ends */
    return NULL;
}

int main(void)
{
    CUdevice device;
    CUmodule module;
    CUstream stream;
    CUgraph graph;
    pthread_t threads[2];
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, "//\n.version 8.0\n.target sm_70\n.address_size 64\n"));
    CHECK(cuModuleGetFunction(&function, module, "ns_4000"));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(stream, 1);
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL))
            return 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch(stream, 1000);
    CHECK(cuStreamEndCapture(stream, &graph));
    puts("done");
    fflush(stdout);
    getchar();
    return 0;
}

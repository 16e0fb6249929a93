/* A tenant that tries to get more GPU time than its share:
 *
 *     evade TRICK SECONDS
 *
 * TRICK capture:NAME  launches the kernel beside a capture, in another stream, that it never ends
 *       torn:NAME     the same, but that stream is destroyed in the middle of its capture
 *       shapes:NAME   every launch looks like a kernel that was never seen
 *       fresh:NAME    every launch is a new graph of one such kernel
 *       swap:NAME     a graph of empty kernels, then one of 100 such kernels where that one was
 *       stuck:NAME    beside kernels on four other streams that do not end
 *       foreign:NAME  a library's kernel on a stream of a context that is not current
 *       copies:BYTES  copies within the GPU; direct:BYTES the same, where the driver finds out that they are
 *       fills:BYTES   fills
 *       contexts:NAME four kernels in a context that is destroyed at once, again and again
 *       retains:NAME  a kernel, after which the primary context is released, which others retain
 *       slots:NAME    beside 200 launches that wait behind one that does not end */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern uint64_t fakegpu_now_ns(void);

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "evade: %s gave %d\n", #call, result_);                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define PTX "//\n.version 8.0\n.target sm_70\n.address_size 64\n"

static CUmodule module;
static CUstream stream;

static CUfunction kernel(const char *name)
{
    CUfunction function;
    CHECK(cuModuleGetFunction(&function, module, name));
    return function;
}

static void launch(CUfunction function, CUstream on, unsigned int shared)
{
    CHECK(cuLaunchKernel(function, 100, 1, 1, 128, 1, 1, shared, on, NULL, NULL));
}

static CUgraphExec graph_of(CUfunction function, int n)
{
    CUgraph graph;
    CUgraphExec exec;
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    for (int i = 0; i < n; i++)
        launch(function, stream, 0);
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cuGraphDestroy(graph));
    return exec;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    char *trick = strtok(argv[1], ":"), *name = strtok(NULL, ":");
    CUdevice device;
    CUcontext context;
    CUstream other;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, PTX));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    uint64_t end = fakegpu_now_ns() + (uint64_t)(atof(argv[2]) * 1e9), launches = 0;
    CUfunction function = NULL;
    CUdeviceptr to = 0, from = 0;
    size_t bytes = strtoull(name, NULL, 10);
    if (bytes) {
        CHECK(cuMemAlloc(&to, bytes));
        CHECK(cuMemAlloc(&from, bytes));
    } else {
        function = kernel(name);
    }
    if (!strcmp(trick, "capture") || !strcmp(trick, "torn")) {
        CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        CHECK(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED));
        if (!strcmp(trick, "torn"))
            CHECK(cuStreamDestroy(other));
    }
    if (!strcmp(trick, "stuck"))
        for (int i = 0; i < 4; i++) {
            CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
            launch(kernel("ns_3000000000_sm1"), other, 0);
        }
    if (!strcmp(trick, "slots")) {
        CUfunction half = kernel("ns_500000_sm1");
        for (int i = 0; i < 40; i++)
            launch(half, stream, 0);
        CHECK(cuStreamSynchronize(stream));
        CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        launch(kernel("ns_30000000000_sm1"), other, 0);
        for (int i = 0; i < 200; i++)
            launch(half, other, 0);
        end = fakegpu_now_ns() + (uint64_t)(atof(argv[2]) * 1e9);
    }
    if (!strcmp(trick, "foreign")) {
        CUlibrary library;
        CUkernel its;
        CHECK(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
        CHECK(cuLibraryGetKernel(&its, library, name));
        CHECK(cuCtxCreate(&context, NULL, 0, device));
        function = (CUfunction)its;
    }
    if (!strcmp(trick, "swap")) {
        CUgraphExec exec = graph_of(kernel("empty"), 1), next;
        for (int i = 0; i < 20000; i++) {
            CHECK(cuGraphLaunch(exec, stream));
            if (i % 100 == 0)
                CHECK(cuStreamSynchronize(stream));
        }
        while (fakegpu_now_ns() < end) {
            CHECK(cuGraphExecDestroy(exec));
            next = graph_of(function, 100);
            launches += next == exec;
            exec = next;
            CHECK(cuGraphLaunch(exec, stream));
            CHECK(cuStreamSynchronize(stream));
            CHECK(cuGraphExecDestroy(exec));
            exec = graph_of(kernel("empty"), 1);
            for (int i = 0; i < 200; i++)
                CHECK(cuGraphLaunch(exec, stream));
            CHECK(cuStreamSynchronize(stream));
        }
        printf("{\"launches\": %llu}\n", (unsigned long long)launches);
        return 0;
    }
    for (; fakegpu_now_ns() < end; launches++)
        if (!strcmp(trick, "contexts")) {
            CHECK(cuCtxCreate(&context, NULL, 0, device));
            CHECK(cuModuleLoadData(&module, PTX));
            for (int i = 0; i < 4; i++)
                launch(kernel(name), NULL, 0);
            CHECK(cuCtxDestroy(context));
        } else if (!strcmp(trick, "retains")) {
            CHECK(cuDevicePrimaryCtxRetain(&context, device));
            launch(function, stream, 0);
            CHECK(cuDevicePrimaryCtxRelease(device));
        } else if (!strcmp(trick, "fresh")) {
            CUgraphExec exec = graph_of(function, 1);
            CHECK(cuGraphLaunch(exec, stream));
            CHECK(cuGraphExecDestroy(exec));
        } else if (!strcmp(trick, "copies")) {
            CHECK(cuMemcpyDtoDAsync(to, from, bytes, stream));
        } else if (!strcmp(trick, "direct")) {
            CHECK(cuMemcpyAsync(to, from, bytes, stream));
        } else if (!strcmp(trick, "fills")) {
            CHECK(cuMemsetD8Async(to, 1, bytes, stream));
        } else {
            launch(function, stream,
                   !strcmp(trick, "shapes") ? (unsigned int)(launches % 20000) : 0);
        }
    printf("{\"launches\": %llu}\n", (unsigned long long)launches);
    fflush(stdout);
    _Exit(0);
}

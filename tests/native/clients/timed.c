/* Runs a script of driver calls, one per argument, for tests of the fake GPU's timing:
 *
 *     timed 'stream s' 'event a' 'record a s' 'launch s ns_4000 10' 'sync s' ...
 *
 * Streams, events and graphs are named by a word; stream 0 is NULL, "pt" the per-thread one. A call
 * that fails ends the program, but with '?' before it, prints its result instead ("? sync s" gives
 * "901"). What a command finds is printed in a line of its own. See `run` for the commands. */
#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern uint64_t fakegpu_now_ns(void);
extern void fakegpu_sleep_until_ns(uint64_t when);
extern void fakegpu_join(void);
extern CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                    unsigned, unsigned, CUstream, void **, void **);

static CUmodule module;
static CUcontext context;
static uint64_t begun;
static struct {
    char kind[8], name[16];
    void *handle;
} table[256];
static int entries;
static char order[4096];
static pthread_t threads[16];
static int n_threads;

static void **named(const char *kind, const char *name)
{
    for (int i = 0; i < entries; i++)
        if (!strcmp(table[i].kind, kind) && !strcmp(table[i].name, name))
            return &table[i].handle;
    snprintf(table[entries].kind, sizeof table[entries].kind, "%s", kind);
    snprintf(table[entries].name, sizeof table[entries].name, "%s", name);
    return &table[entries++].handle;
}

static CUstream stream(const char *name)
{
    return !strcmp(name, "0")    ? NULL
           : !strcmp(name, "pt") ? CU_STREAM_PER_THREAD
                                 : (CUstream)*named("s", name);
}
#define EVENT(name) ((CUevent) * named("e", name))
#define GRAPH(name) ((CUgraph) * named("g", name))
#define EXEC(name) ((CUgraphExec) * named("x", name))

static void note(void *text)
{
    strcat(order, text);
    fprintf(stderr, "host %s at %lu\n", (char *)text, (unsigned long)(fakegpu_now_ns() - begun));
}

static CUresult run(char **word, int words);

static CUresult launch(CUstream on, const char *name, int times, int blocks)
{
    CUfunction function;
    CUresult result = cuModuleGetFunction(&function, module, name);
    for (int i = 0; i < times && !result; i++)
        result = cuLaunchKernel(function, (unsigned)blocks, 1, 1, 32, 1, 1, 0, on, NULL, NULL);
    return result;
}

static void *in_thread(void *text)
{
    char *copy = strdup(text), *next = copy;
    cuCtxSetCurrent(context);
    while (next && *next) {
        char *line = strsep(&next, ","), *word[16], *token;
        int words = 0;
        while ((token = strsep(&line, " ")))
            if (*token)
                word[words++] = token;
        if (words && run(word, words))
            exit(2);
    }
    free(copy);
    return NULL;
}

static CUresult run(char **word, int words)
{
    static char nothing[] = "";
    const char *a = words > 1 ? word[1] : nothing, *b = words > 2 ? word[2] : nothing;
    int third = words > 3 ? atoi(word[3]) : 1;
#define IS(text) (!strcmp(word[0], text))
    if (IS("stream")) /* stream NAME [FLAGS [PRIORITY]] */
        return cuStreamCreateWithPriority((CUstream *)named("s", a), (unsigned)atoi(b),
                                          words > 3 ? third : 0);
    if (IS("green")) { /* green STREAM SMS: a stream on a part of the GPU */
        CUdevResource all, part;
        CUdevResourceDesc description;
        CUgreenCtx green;
        unsigned groups = 1;
        CUresult result = cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
        if (!result)
            result = cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, (unsigned)atoi(b));
        if (!result)
            result = cuDevResourceGenerateDesc(&description, &part, 1);
        if (!result)
            result = cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
        return result ? result
                      : cuGreenCtxStreamCreate((CUstream *)named("s", a), green,
                                               CU_STREAM_NON_BLOCKING, 0);
    }
    if (IS("destroy")) /* destroy STREAM */
        return cuStreamDestroy(stream(a));
    if (IS("event")) /* event NAME [FLAGS] */
        return cuEventCreate((CUevent *)named("e", a), (unsigned)atoi(b));
    if (IS("launch")) /* launch STREAM FUNCTION [TIMES [BLOCKS]] */
        return launch(stream(a), b, third, words > 4 ? atoi(word[4]) : 1);
    if (IS("pt_launch")) { /* pt_launch FUNCTION: by the per-thread entry point */
        CUfunction function;
        CUresult result = cuModuleGetFunction(&function, module, a);
        return result ? result
                      : cuLaunchKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    }
    if (IS("record")) /* record EVENT STREAM [FLAGS] */
        return cuEventRecordWithFlags(EVENT(a), stream(b), words > 3 ? (unsigned)third : 0);
    if (IS("wait")) /* wait STREAM EVENT */
        return cuStreamWaitEvent(stream(a), EVENT(b), words > 3 ? (unsigned)third : 0);
    if (IS("sync")) /* sync [STREAM] */
        return words > 1 ? cuStreamSynchronize(stream(a)) : cuCtxSynchronize();
    if (IS("esync"))
        return cuEventSynchronize(EVENT(a));
    if (IS("query"))
        return cuStreamQuery(stream(a));
    if (IS("equery"))
        return cuEventQuery(EVENT(a));
    if (IS("host")) /* host STREAM TEXT: a function that notes TEXT */
        return cuLaunchHostFunc(stream(a), note, strdup(b));
    if (IS("copy")) { /* copy STREAM BYTES: page-locked host to device */
        static void *host;
        static CUdeviceptr device;
        size_t bytes = strtoul(b, NULL, 0);
        if (!host && (cuMemAllocHost(&host, bytes) || cuMemAlloc(&device, bytes)))
            return CUDA_ERROR_OUT_OF_MEMORY;
        return cuMemcpyHtoDAsync(device, host, bytes, stream(a));
    }
    if (IS("capture")) /* capture STREAM [MODE] */
        return cuStreamBeginCapture(stream(a), (CUstreamCaptureMode)atoi(b));
    if (IS("mode")) {
        CUstreamCaptureMode mode = (CUstreamCaptureMode)atoi(a);
        return cuThreadExchangeStreamCaptureMode(&mode);
    }
    if (IS("end")) /* end STREAM GRAPH */
        return cuStreamEndCapture(stream(a), (CUgraph *)named("g", b));
    if (IS("nodes")) {
        size_t n = 0;
        CUresult result = cuGraphGetNodes(GRAPH(a), NULL, &n);
        printf("%zu\n", n);
        return result;
    }
    if (IS("instantiate")) /* instantiate GRAPH EXEC */
        return cuGraphInstantiateWithFlags((CUgraphExec *)named("x", b), GRAPH(a), 0);
    if (IS("update")) { /* update EXEC GRAPH */
        CUgraphExecUpdateResultInfo info;
        return cuGraphExecUpdate(EXEC(a), GRAPH(b), &info);
    }
    if (IS("gdestroy")) /* gdestroy GRAPH EXEC */
        return cuGraphExecDestroy(EXEC(b)) || cuGraphDestroy(GRAPH(a)) ? CUDA_ERROR_INVALID_VALUE
                                                                       : CUDA_SUCCESS;
    if (IS("glaunch")) /* glaunch EXEC STREAM */
        return cuGraphLaunch(EXEC(a), stream(b));
    if (IS("alloc")) /* alloc NAME STREAM BYTES: stream-ordered */
        return cuMemAllocAsync((CUdeviceptr *)named("m", a), strtoul(word[3], NULL, 0), stream(b));
    if (IS("free")) /* free NAME STREAM */
        return cuMemFreeAsync((CUdeviceptr)*named("m", a), stream(b));
    if (IS("malloc")) {
        CUdeviceptr address;
        return cuMemAlloc(&address, 1 << 20);
    }
    if (IS("trim"))
        return cuDeviceGraphMemTrim(0);
    if (IS("used")) { /* bytes of the GPU in use */
        size_t left, total;
        CUresult result = cuMemGetInfo(&left, &total);
        printf("%zu\n", total - left);
        return result;
    }
    if (IS("elapsed")) { /* elapsed EVENT EVENT: microseconds */
        float ms;
        CUresult result = cuEventElapsedTime(&ms, EVENT(a), EVENT(b));
        if (!result)
            printf("%.1f\n", ms * 1000);
        return result;
    }
    if (IS("time")) { /* nanoseconds since the script began */
        printf("%lu\n", (unsigned long)(fakegpu_now_ns() - begun));
        return CUDA_SUCCESS;
    }
    if (IS("order")) {
        printf("%s\n", order);
        return CUDA_SUCCESS;
    }
    if (IS("sleep")) { /* sleep NANOSECONDS */
        fakegpu_sleep_until_ns(fakegpu_now_ns() + strtoul(a, NULL, 0));
        return CUDA_SUCCESS;
    }
    if (IS("say")) { /* for who reads the pipe */
        printf("%s\n", a);
        fflush(stdout);
        return CUDA_SUCCESS;
    }
    if (IS("append")) { /* append FILE TEXT: what others outside of the fake see */
        FILE *file = fopen(a, "a");
        fputs(b, file);
        return (CUresult)fclose(file);
    }
    if (IS("read")) /* blocks outside the fake */
        return getchar() == EOF ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
    if (IS("die"))
        return (CUresult)raise(SIGKILL);
    if (IS("join")) { /* waits for the threads */
        while (n_threads)
            pthread_join(threads[--n_threads], NULL);
        return CUDA_SUCCESS;
    }
    fprintf(stderr, "timed: no command %s\n", word[0]);
    exit(3);
}

int main(int argc, char **argv)
{
    CUdevice device;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context) || cuModuleLoadData(&module, ".version 8.0\n.target sm_50\n"))
        return 4;
    begun = fakegpu_now_ns();
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "thread ", 7)) { /* thread COMMAND, COMMAND, ...: beside it */
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
            pthread_attr_setstacksize(&attributes, 64 << 10); /* as some runtimes have it */
#endif
            pthread_create(&threads[n_threads++], &attributes, in_thread, argv[i] + 7);
            continue;
        }
        char *line = strdup(argv[i]), *rest = line, *word[16], *token;
        int words = 0;
        while ((token = strsep(&rest, " ")))
            if (*token)
                word[words++] = token;
        bool ask = words && !strcmp(word[0], "?");
        CUresult result = run(word + ask, words - ask);
        if (ask)
            printf("%d\n", result);
        else if (result)
            fprintf(stderr, "timed: '%s' gave %d\n", argv[i], result);
        if (result && !ask)
            return 1;
        free(line);
    }
    return 0;
}

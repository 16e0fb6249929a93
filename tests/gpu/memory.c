/* Programs of the memory tests: memory WHAT [ARGUMENTS]; results are lines of JSON.
 *
 *   paths           takes 96 MiB by each path in turn; after each step waits for a line on stdin
 *   boundary TRIES  the largest cuMemAlloc that succeeds, by bisection, again and again
 *   race SECONDS SEED   waits for a line, then takes and gives back 64 MiB at random
 *   pair N          what cuMemAlloc and cuMemFree of 4 MiB cost together
 *   view            cuMemGetInfo and cuDeviceTotalMem
 *   hold MIB        takes that much and waits for a line on stdin
 *   follow SECONDS  tries to hold 64 MiB more every 2 ms, gives back on refusal: what a live limit does
 *   start           how long cuInit and the first context took
 *   deep MIB FILE   has deep.so, loaded with RTLD_DEEPBIND, hold that much
 */
#define _GNU_SOURCE
#include "driver.h"

#include <unistd.h>

#define SIZE (96 * MIB)

static struct gpu gpu;

static void step(const char *path, const char *what, uint64_t bytes, CUresult result)
{
    char line[64];
    printf("{\"path\": \"%s\", \"step\": \"%s\", \"bytes\": %lu, \"result\": %d}\n", path, what,
           (unsigned long)bytes, (int)result);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        exit(1);
}

static CUmemGenericAllocationHandle physical(void)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu.device}};
    MUST(cuMemCreate, &handle, SIZE, &prop, 0);
    return handle;
}

static void vmm(int released_first)
{
    const char *path = released_first ? "vmm released, mapped" : "vmm";
    CUmemGenericAllocationHandle handle = physical();
    CUdeviceptr p;

    MUST(cuMemAddressReserve, &p, SIZE, 0, 0, 0);
    MUST(cuMemMap, p, SIZE, 0, handle, 0);
    if (released_first)
        MUST(cuMemRelease, handle);
    step(path, "taken", SIZE, 0);
    MUST(cuMemUnmap, p, SIZE);
    if (!released_first)
        MUST(cuMemRelease, handle);
    MUST(cuMemAddressFree, p, SIZE);
    step(path, "freed", 0, 0);
}

static void pooled(int own)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu.device}};
    const char *path = own ? "own pool" : "async";
    CUmemoryPool pool;
    CUdeviceptr p;

    if (own)
        MUST(cuMemPoolCreate, &pool, &props);
    else
        MUST(cuDeviceGetDefaultMemPool, &pool, gpu.device);
    if (own)
        MUST(cuMemAllocFromPoolAsync, &p, SIZE, pool, NULL);
    else
        MUST(cuMemAllocAsync, &p, SIZE, NULL);
    MUST(cuCtxSynchronize, );
    step(path, "taken", SIZE, 0);
    MUST(cuMemFreeAsync, p, NULL);
    MUST(cuCtxSynchronize, );
    if (own)
        MUST(cuMemPoolDestroy, pool);
    else
        MUST(cuMemPoolTrimTo, pool, 0);
    step(path, "freed", 0, 0);
}

static void graph(int captured)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu.device}},
        .bytesize = SIZE};
    const char *path = captured ? "captured" : "graph node";
    CUgraphNode alloc, dealloc;
    CUgraph made;
    CUgraphExec exec;
    CUstream stream;
    CUdeviceptr p;

    MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    if (captured) {
        MUST(cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        MUST(cuMemAllocAsync, &p, SIZE, stream);
        MUST(cuMemFreeAsync, p, stream);
        MUST(cuStreamEndCapture, stream, &made);
    } else {
        MUST(cuGraphCreate, &made, 0);
        MUST(cuGraphAddMemAllocNode, &alloc, made, NULL, 0, &params);
        MUST(cuGraphAddMemFreeNode, &dealloc, made, &alloc, 1, params.dptr);
    }
    MUST(cuGraphInstantiateWithFlags, &exec, made, 0);
    MUST(cuGraphLaunch, exec, stream);
    MUST(cuStreamSynchronize, stream);
    step(path, "taken", SIZE, 0);
    MUST(cuGraphExecDestroy, exec);
    MUST(cuGraphDestroy, made);
    MUST(cuDeviceGraphMemTrim, gpu.device);
    MUST(cuStreamDestroy, stream);
    step(path, "freed", 0, 0);
}

static void module(void)
{
    static char text[256];
    CUmodule big;

    snprintf(text, sizeof text,
             ".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .align 8 .b8 big[%lu];\n",
             (unsigned long)SIZE);
    MUST(cuModuleLoadData, &big, text);
    step("module", "taken", SIZE, 0);
    MUST(cuModuleUnload, big);
    step("module", "freed", 0, 0);
}

static void paths(void)
{
    CUDA_ARRAY_DESCRIPTOR flat = {.Width = 4096, .Height = SIZE / 4096 / 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUDA_ARRAY3D_DESCRIPTOR deep = {.Width = 256, .Height = 256, .Depth = SIZE / 65536 / 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUipcMemHandle shared;
    CUmipmappedArray levels;
    CUdeviceptr p;
    CUarray array;
    size_t pitch;

    step("start", "taken", 0, 0);
    MUST(cuMemAlloc, &p, SIZE);
    step("alloc", "taken", SIZE, 0);
    MUST(cuMemFree, p);
    step("alloc", "freed", 0, 0);
    MUST(cuMemAllocPitch, &p, &pitch, 1000, SIZE / 1024, 4);
    step("pitch", "taken", pitch * (SIZE / 1024), 0);
    MUST(cuMemFree, p);
    step("pitch", "freed", 0, 0);
    MUST(cuMemAllocManaged, &p, SIZE, CU_MEM_ATTACH_GLOBAL);
    step("managed", "taken", SIZE, 0);
    MUST(cuMemFree, p);
    step("managed", "freed", 0, 0);
    MUST(cuArrayCreate, &array, &flat);
    step("array", "taken", SIZE, 0);
    MUST(cuArrayDestroy, array);
    step("array", "freed", 0, 0);
    MUST(cuArray3DCreate, &array, &deep);
    step("array 3D", "taken", SIZE, 0);
    MUST(cuArrayDestroy, array);
    step("array 3D", "freed", 0, 0);
    deep.Depth = 0;
    deep.Width = deep.Height = 4096;
    MUST(cuMipmappedArrayCreate, &levels, &deep, 5);
    step("mipmap", "taken", 4ull * 4096 * 4096 * 341 / 256, 0);
    MUST(cuMipmappedArrayDestroy, levels);
    step("mipmap", "freed", 0, 0);
    vmm(0);
    vmm(1);
    pooled(0);
    pooled(1);
    graph(0);
    graph(1);
    MUST(cuMemAlloc, &p, SIZE);
    MUST(cuIpcGetMemHandle, &shared, p);
    step("exported", "taken", SIZE, 0);
    MUST(cuMemFree, p);
    step("exported", "freed", 0, 0);
    module();
}

static void boundary(int tries)
{
    printf("[");
    for (int i = 0; i < tries; i++) {
        uint64_t low = 0, high = 1ull << 20; /* in blocks of 2 MiB */
        CUdeviceptr p;
        int after;
        while (high - low > 1) {
            uint64_t middle = (low + high) / 2;
            if (F(cuMemAlloc)(&p, middle * 2 * MIB) == CUDA_SUCCESS) {
                MUST(cuMemFree, p);
                low = middle;
            } else {
                high = middle;
            }
        }
        after = (int)F(cuMemAlloc)(&p, (low + 1) * 2 * MIB);
        printf("%s[%lu, %d]", i ? ", " : "", (unsigned long)(low * 2 * MIB), after);
    }
    printf("]\n");
}

static void race(double seconds, unsigned seed)
{
    enum { MOST = 64 };
    CUdeviceptr held[MOST];
    uint64_t end, tried = 0, refused = 0, false_ = 0, errors = 0;
    int n = 0;

    step("race", "ready", 0, 0);
    end = now_ns() + (uint64_t)(seconds * 1e9);
    while (now_ns() < end) {
        if (n && (rand_r(&seed) & 1 || n == MOST)) {
            int i = rand_r(&seed) % n;
            errors += F(cuMemFree)(held[i]) != CUDA_SUCCESS;
            held[i] = held[--n];
        } else {
            CUresult result = F(cuMemAlloc)(&held[n], 64 * MIB);
            size_t free_ = 0, total;
            tried++;
            if (result == CUDA_SUCCESS) {
                n++;
            } else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
                refused++; /* false where room was left even for one request of each of 32 */
                F(cuMemGetInfo)(&free_, &total);
                false_ += free_ > 33 * 64 * MIB;
            } else {
                errors++;
            }
        }
    }
    while (n)
        errors += F(cuMemFree)(held[--n]) != CUDA_SUCCESS;
    printf("{\"tried\": %lu, \"refused\": %lu, \"false\": %lu, \"errors\": %lu}\n", (unsigned long)tried,
           (unsigned long)refused, (unsigned long)false_, (unsigned long)errors);
    fflush(stdout);
    step("race", "done", 0, 0);
}

static void deep(double mib, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    int (*hold)(size_t) = NULL;

    if (library)
        *(void **)&hold = dlsym(library, "deep_hold");
    if (!hold) {
        fprintf(stderr, "memory: %s\n", dlerror());
        exit(2);
    }
    step("deep", "taken", (uint64_t)mib * MIB, (CUresult)hold((size_t)mib * MIB));
}

static void follow(double seconds)
{
    enum { MOST = 4096 };
    static CUdeviceptr held[MOST];
    uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
    int n = 0, errors = 0;

    while (now_ns() < end) {
        CUresult result = n < MOST ? F(cuMemAlloc)(&held[n], 64 * MIB) : CUDA_ERROR_OUT_OF_MEMORY;
        if (result == CUDA_SUCCESS)
            n++;
        else if (result == CUDA_ERROR_OUT_OF_MEMORY && n)
            errors += F(cuMemFree)(held[--n]) != CUDA_SUCCESS;
        else
            errors++;
        usleep(2000);
    }
    printf("{\"errors\": %d}\n", errors);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    double first = argc > 2 ? strtod(argv[2], NULL) : 0;
    uint64_t from = now_ns(), initialised;
    size_t free_, total, whole;
    CUdeviceptr p;

    if (!strcmp(what, "deep")) { /* the driver is not even opened here */
        deep(first, argc > 3 ? argv[3] : "");
        return 0;
    }
    must(F(cuInit)(0), "cuInit");
    initialised = now_ns();
    gpu_open(&gpu, 0);
    if (!strcmp(what, "paths")) {
        paths();
    } else if (!strcmp(what, "boundary")) {
        boundary((int)first);
    } else if (!strcmp(what, "race")) {
        race(first, (unsigned)atoi(argv[3]));
    } else if (!strcmp(what, "follow")) {
        follow(first);
    } else if (!strcmp(what, "pair")) {
        from = now_ns();
        for (int i = 0; i < (int)first; i++) {
            MUST(cuMemAlloc, &p, 4 * MIB);
            MUST(cuMemFree, p);
        }
        printf("{\"ns_per_pair\": %.1f}\n", (double)(now_ns() - from) / first);
    } else if (!strcmp(what, "view")) {
        MUST(cuMemGetInfo, &free_, &total);
        MUST(cuDeviceTotalMem, &whole, gpu.device);
        step("view", "seen", total, whole == total ? 0 : 1);
        printf("{\"free\": %lu, \"total\": %lu, \"device\": %lu}\n", (unsigned long)free_,
               (unsigned long)total, (unsigned long)whole);
    } else if (!strcmp(what, "hold")) {
        CUresult result = first > 0 ? F(cuMemAlloc)(&p, (size_t)first * MIB) : CUDA_SUCCESS;
        step("hold", "taken", (uint64_t)first * MIB, result);
    } else if (!strcmp(what, "start")) {
        printf("{\"init_ns\": %lu, \"all_ns\": %lu}\n", (unsigned long)(initialised - from),
               (unsigned long)(now_ns() - from));
    } else {
        fprintf(stderr, "memory: what shall it do?\n");
        return 2;
    }
    return 0;
}

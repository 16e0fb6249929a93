/* Makes random memory calls of every kind and holds them against the fake GPU's own books.
 *
 *   memory_random OPERATIONS SEED MOST [exact] [threads=N] [waits]
 *
 * With `waits` it says that it is ready, and begins when it is told a line: so those of a race meet.
 * MOST: bytes that this process wants at most. Prints one JSON line. With `exact` (this process is
 * alone in its container) the ledger must equal the truth after every call. A refusal counts as
 * false where the request would have fitted at every instant of the call (counted with one thread
 * only). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#include "abi.h"

// clang-format off
#define DRIVER(X) \
    X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease_v2) X(cuCtxSetCurrent) \
    X(cuCtxPopCurrent_v2) X(cuCtxCreate_v2) X(cuCtxDestroy_v2) X(cuMemAlloc_v2) \
    X(cuMemFree_v2) X(cuMemAllocPitch_v2) X(cuMemAllocManaged) X(cuArrayCreate_v2) \
    X(cuArray3DCreate_v2) X(cuArrayDestroy) X(cuMipmappedArrayCreate) \
    X(cuMipmappedArrayDestroy) X(cuMemAddressReserve) X(cuMemCreate) X(cuMemRelease) \
    X(cuMemMap) X(cuMemUnmap) X(cuMemRetainAllocationHandle) X(cuMemAllocAsync) \
    X(cuMemFreeAsync) X(cuMemAllocFromPoolAsync) X(cuMemPoolCreate) X(cuMemPoolDestroy) \
    X(cuMemPoolTrimTo) X(cuMemPoolSetAttribute) X(cuDeviceGetMemPool) X(cuStreamSynchronize) \
    X(cuModuleLoadData) X(cuModuleUnload) X(cuMemGetInfo_v2) X(cuMemAllocHost_v2) \
    X(cuMemFreeHost) X(cuStreamCreate)
// clang-format on
#define X(name) static __typeof__(&name) p_##name;
DRIVER(X)
#undef X

enum kind { NOTHING, PLAIN, ARRAY, MIPMAP, HANDLE, STREAMED, MODULE, CONTEXT, PAGES, KINDS };
enum { SLOTS = 64, SPAN = 64 };
static const uint64_t MIB = 1 << 20, BLOCK = 2 << 20;
struct thing {
    enum kind kind;
    uint64_t value, bytes, address;
    bool held, mapped;
};

static const struct vg_counters *counters;
static const struct vg_limits *limits;
static uint64_t (*used)(const char *tag, int gpu);
static void (*ask)(int gpu, uint64_t bytes);
static int (*answered)(void);
static const char *tag;
static uint64_t most;
static bool exact, waits;
static unsigned threads = 1;
static CUcontext context;
static CUmemoryPool pools[2];
static _Atomic long requests, refused, wrong, different, others;
static _Atomic uint64_t wanted_now, slowest_ns;

static uint64_t held(void)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < counters->slots_used && i < VG_SLOTS; i++)
        sum += counters->slot[i].device[0].held;
    return sum;
}

static const void *map(const char *name, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", getenv("ALNAIR_VGPU_DIR"), name);
    int fd = open(path, O_RDONLY);
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        exit(3);
    return at;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* `call` asks for memory that takes at most `bytes` of the GPU. */
#define ASK(bytes, call)                                                                           \
    ({                                                                                             \
        uint64_t need_ = (bytes);                                                                  \
        ask(0, need_);                                                                             \
        uint64_t at_ = now();                                                                      \
        CUresult got_ = call;                                                                      \
        uint64_t took_ = now() - at_;                                                              \
        bool fits_ = answered();                                                                   \
        if (took_ > slowest_ns)                                                                    \
            slowest_ns = took_;                                                                    \
        atomic_fetch_add(&requests, 1);                                                            \
        if (got_ == CUDA_ERROR_OUT_OF_MEMORY) {                                                    \
            atomic_fetch_add(&refused, 1);                                                         \
            atomic_fetch_add(&wrong, fits_ && threads == 1);                                       \
        } else if (got_ != CUDA_SUCCESS) {                                                         \
            if (atomic_fetch_add(&others, 1) < 5)                                                  \
                fprintf(stderr, "%s: %d\n", #call, got_);                                          \
        }                                                                                          \
        got_ == CUDA_SUCCESS;                                                                      \
    })

static uint64_t up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

static bool take(struct thing *thing, unsigned *seed, uint64_t area)
{
    uint64_t size =
        rand_r(seed) % 3 ? rand_r(seed) % (3 * MIB) + 1 : (uint64_t)(rand_r(seed) % 24 + 1) * BLOCK;
    if (wanted_now + size > most)
        return false;
    CUmemAllocationProp at = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}};
    CUDA_ARRAY_DESCRIPTOR flat = {size / 4096 + 1, 256, CU_AD_FORMAT_FLOAT, 4};
    CUDA_ARRAY3D_DESCRIPTOR deep = {size / 65536 + 1, 64, 64, CU_AD_FORMAT_HALF, 4, 0};
    static const char ptx[] = ".version 8.0\n.target sm_90\n";
    CUdeviceptr out = 0;
    size_t pitch;
    *thing = (struct thing){.kind = PLAIN, .bytes = size, .held = true};
    bool got = false;
    switch (rand_r(seed) % 13) {
    case 0:
    case 1:
    case 2: got = ASK(up(size, BLOCK), p_cuMemAlloc_v2(&out, size)); break;
    case 3:
        got = ASK(up(up(size / 64 + 1, 512) * 64, BLOCK),
                  p_cuMemAllocPitch_v2(&out, &pitch, size / 64 + 1, 64, 4));
        break;
    case 4:
        got = ASK(up(size, BLOCK), p_cuMemAllocManaged(&out, size, CU_MEM_ATTACH_GLOBAL));
        break;
    case 5:
        thing->kind = ARRAY;
        got = ASK(UINT64_MAX / 4, p_cuArrayCreate_v2((CUarray *)&out, &flat));
        break;
    case 6:
        thing->kind = ARRAY;
        got = ASK(UINT64_MAX / 4, p_cuArray3DCreate_v2((CUarray *)&out, &deep));
        break;
    case 7:
        thing->kind = MIPMAP;
        deep.Depth = 0;
        got = ASK(UINT64_MAX / 4, p_cuMipmappedArrayCreate((CUmipmappedArray *)&out, &deep, 6));
        break;
    case 8:
    case 9:
        thing->kind = HANDLE;
        thing->bytes = up(size, BLOCK);
        thing->address = area;
        got = ASK(thing->bytes,
                  p_cuMemCreate((CUmemGenericAllocationHandle *)&out, thing->bytes, &at, 0));
        break;
    case 10:
        thing->kind = STREAMED;
        got = ASK(up(size, 32 * MIB), p_cuMemAllocAsync(&out, size, NULL));
        break;
    case 11:
        thing->kind = STREAMED;
        got = ASK(up(size, 32 * MIB),
                  p_cuMemAllocFromPoolAsync(&out, size, pools[rand_r(seed) % 2], NULL));
        break;
    default:
        if (rand_r(seed) % 4 == 0) {
            thing->kind = MODULE;
            got = ASK(4096, p_cuModuleLoadData((CUmodule *)&out, ptx));
        } else if (rand_r(seed) % 8 == 0) {
            thing->kind = CONTEXT;
            got = ASK(limits->device[0].context_bytes, p_cuCtxCreate_v2((CUcontext *)&out, 0, 0));
            if (got)
                p_cuCtxPopCurrent_v2(NULL);
        } else {
            thing->kind = PAGES;
            got = p_cuMemAllocHost_v2((void **)&out, 4096) == CUDA_SUCCESS;
        }
    }
    thing->value = out;
    if (!got)
        thing->kind = NOTHING;
    else
        atomic_fetch_add(&wanted_now, thing->bytes);
    return got;
}

static void give(struct thing *thing, unsigned *seed)
{
    CUresult result = CUDA_SUCCESS;
    CUmemGenericAllocationHandle again;
    switch (thing->kind) {
    case HANDLE: /* some step of its life */
        if (thing->held && !thing->mapped && rand_r(seed) % 2) {
            result = p_cuMemMap(thing->address, thing->bytes, 0, thing->value, 0);
            thing->mapped = result == CUDA_SUCCESS;
            return;
        }
        if (thing->held && thing->mapped && rand_r(seed) % 4 == 0 &&
            p_cuMemRetainAllocationHandle(&again, (void *)thing->address) == CUDA_SUCCESS)
            p_cuMemRelease(again);
        if (thing->held && rand_r(seed) % 2) {
            p_cuMemRelease(thing->value);
            thing->held = false;
        } else if (thing->mapped) {
            p_cuMemUnmap(thing->address, thing->bytes);
            thing->mapped = false;
        }
        if (thing->held || thing->mapped)
            return;
        break;
    case PLAIN:
        if (rand_r(seed) % 8) {
            result = p_cuMemFree_v2(thing->value);
        } else { /* charged until the stream has come to it */
            result = p_cuMemFreeAsync(thing->value, NULL);
            p_cuStreamSynchronize(NULL);
        }
        break;
    case STREAMED:
        result =
            rand_r(seed) % 8 ? p_cuMemFreeAsync(thing->value, NULL) : p_cuMemFree_v2(thing->value);
        break;
    case ARRAY: result = p_cuArrayDestroy((CUarray)thing->value); break;
    case MIPMAP: result = p_cuMipmappedArrayDestroy((CUmipmappedArray)thing->value); break;
    case MODULE: result = p_cuModuleUnload((CUmodule)thing->value); break;
    case CONTEXT: result = p_cuCtxDestroy_v2((CUcontext)thing->value); break;
    case PAGES: result = p_cuMemFreeHost((void *)thing->value); break;
    default: break;
    }
    if (result != CUDA_SUCCESS && atomic_fetch_add(&others, 1) < 5)
        fprintf(stderr, "freeing kind %d: %d\n", thing->kind, result);
    atomic_fetch_sub(&wanted_now, thing->bytes);
    thing->kind = NOTHING;
}

/* Calls that must fail or change nothing. */
static void disturb(unsigned *seed)
{
    CUdeviceptr out;
    size_t free_bytes, total;
    switch (rand_r(seed) % 7) {
    case 0: p_cuMemFree_v2((CUdeviceptr)rand_r(seed) << 9); break;
    case 1: p_cuMemAlloc_v2(&out, UINT64_MAX - rand_r(seed) % 4096); break;
    case 2: p_cuMemAlloc_v2(&out, 0); break;
    case 3: p_cuMemRelease(rand_r(seed)); break;
    case 4: p_cuMemPoolTrimTo(pools[rand_r(seed) % 2], 0); break;
    case 5: p_cuStreamSynchronize(NULL); break;
    default:
        if (p_cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS || free_bytes > total ||
            total != limits->device[0].memory_limit)
            atomic_fetch_add(&others, 1);
    }
}

struct job {
    pthread_t thread;
    long operations;
    unsigned seed;
};

static void *run(void *argument)
{
    struct job *job = argument;
    struct thing things[SLOTS] = {0};
    unsigned seed = job->seed;
    CUdeviceptr area[SLOTS];
    p_cuCtxSetCurrent(context);
    for (int i = 0; i < SLOTS; i++)
        if (p_cuMemAddressReserve(&area[i], SPAN * BLOCK, 0, 0, 0) != CUDA_SUCCESS)
            exit(4);
    for (long i = 0; i < job->operations; i++) {
        int one = rand_r(&seed) % SLOTS;
        if (rand_r(&seed) % 10 == 0)
            disturb(&seed);
        else if (things[one].kind)
            give(&things[one], &seed);
        else
            take(&things[one], &seed, area[one]);
        if (exact && held() != used(tag, 0) && atomic_fetch_add(&different, 1) < 5)
            fprintf(stderr, "call %ld (kind %d): ledger %lld bytes off\n", i, things[one].kind,
                    (long long)(held() - used(tag, 0)));
    }
    for (int i = 0; i < SLOTS; i++)
        while (things[i].kind)
            give(&things[i], &seed);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *fake = dlopen("libfakegpu.so", RTLD_NOW);
    if (!driver || !fake)
        return 2;
#define X(name) *(void **)&p_##name = dlsym(driver, #name);
    DRIVER(X)
#undef X
    *(void **)&used = dlsym(fake, "fakegpu_used");
    *(void **)&ask = dlsym(fake, "fakegpu_ask");
    *(void **)&answered = dlsym(fake, "fakegpu_answered");
    tag = getenv("FAKEGPU_TAG");
    long operations = atol(argv[1]);
    unsigned seed = (unsigned)atoi(argv[2]);
    most = strtoull(argv[3], NULL, 0);
    for (int i = 4; i < argc; i++) {
        exact |= !strcmp(argv[i], "exact");
        waits |= !strcmp(argv[i], "waits");
        if (!strncmp(argv[i], "threads=", 8))
            threads = (unsigned)atoi(argv[i] + 8);
    }
    counters = map("counters", sizeof *counters);
    limits = map("limits", sizeof *limits);
    if (p_cuInit(0) != CUDA_SUCCESS)
        return 5;
    /* Others may hold what the context needs: a program would end here, this one tries again. */
    for (int i = 0; !ASK(limits->device[0].context_bytes, p_cuDevicePrimaryCtxRetain(&context, 0));
         i++)
        if (i == 30000 || usleep(10000))
            return 6;
    p_cuCtxSetCurrent(context);
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}};
    uint64_t threshold = 64 * MIB;
    if (p_cuMemPoolCreate(&pools[0], &properties) != CUDA_SUCCESS ||
        p_cuDeviceGetMemPool(&pools[1], 0) != CUDA_SUCCESS)
        return 7;
    p_cuMemPoolSetAttribute(pools[0], CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    char told[16];
    if (waits && (puts("ready") < 0 || fflush(stdout) || !fgets(told, sizeof told, stdin)))
        return 8;
    struct job job[64];
    for (unsigned i = 0; i < threads && i < 64; i++) {
        job[i] = (struct job){.operations = operations / threads, .seed = seed * 64 + i};
        pthread_create(&job[i].thread, NULL, run, &job[i]);
    }
    for (unsigned i = 0; i < threads && i < 64; i++)
        pthread_join(job[i].thread, NULL);
    p_cuStreamSynchronize(NULL);
    p_cuMemPoolDestroy(pools[0]);
    p_cuMemPoolTrimTo(pools[1], 0);
    p_cuDevicePrimaryCtxRelease_v2(0);
    uint64_t mine = 0; /* what this process's slot still says */
    for (int i = 0; i < VG_SLOTS; i++)
        if (counters->slot[i].owner == (uint64_t)getpid())
            mine += counters->slot[i].device[0].held + counters->slot[i].device[0].pending +
                    counters->slot[i].host_bytes + counters->slot[i].leaving[0];
    printf("{\"requests\": %ld, \"refused\": %ld, \"false\": %ld, \"different\": %ld, "
           "\"errors\": %ld, \"left\": %llu, \"slowest_ms\": %.3f}\n",
           requests, refused, wrong, different, others, (unsigned long long)mine,
           (double)slowest_ns / 1e6);
    return 0;
}

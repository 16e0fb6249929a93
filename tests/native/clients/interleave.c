/* Two threads in one order: the first stops inside a call of the driver, the other does something
 * meanwhile, then the first goes on (scripted_driver.c stands in for the driver).
 *
 *   interleave CASE
 *
 * Prints what the library holds as used, in MiB, at the moments that each case names; "stalled"
 * where the other thread could not go on while the first was in the driver. */
#include <cuda.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB (1ull << 20)
#define PLACE ((CUdeviceptr)0x500000000000ull)
#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_) {                                                                             \
            printf("%s: %d\n", #call, result_);                                                    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

__attribute__((visibility("default"))) uint64_t surplus_bytes;
__attribute__((visibility("default"))) int is_trimmed;
__attribute__((visibility("default"))) uint64_t most_reserved;
__attribute__((visibility("default"))) CUmemGenericAllocationHandle next_handle = 1;
__attribute__((visibility("default"))) __thread CUcontext current_context = (CUcontext)64;
__attribute__((visibility("default"))) int is_context_kept;
__attribute__((visibility("default"))) int has_events;

static const char *stop_at; /* the call in which the first thread waits */
static __thread int is_first;
static sem_t reached, go_on;

static int wait_at_most(sem_t *semaphore, int seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    return sem_timedwait(semaphore, &until);
}

__attribute__((visibility("default"))) void on_call(const char *name)
{
    if (!is_first || strcmp(name, stop_at))
        return;
    is_first = 0; /* once */
    sem_post(&reached);
    if (wait_at_most(&go_on, 3))
        printf("stalled\n");
}

static pthread_t thread;
static void (*first)(void);

static void *run_first(void *unused)
{
    is_first = 1;
    first();
    return unused;
}

/* Starts the first thread, and returns when it is in that call. */
static void begin(void (*what)(void), const char *call)
{
    first = what;
    stop_at = call;
    pthread_create(&thread, NULL, run_first, NULL);
    if (wait_at_most(&reached, 10)) {
        printf("never came to %s\n", call);
        exit(1);
    }
}

static void end(void)
{
    sem_post(&go_on);
    pthread_join(thread, NULL);
}

static void show(const char *when)
{
    size_t free, total;
    CHECK(cuMemGetInfo(&free, &total));
    printf("%s %.0f\n", when, (double)(total - free) / (double)MIB);
}

/* ---- mappings -------------------------------------------------------------------------------- */

static CUmemGenericAllocationHandle created(uint64_t mib)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle handle;
    CHECK(cuMemCreate(&handle, mib * MIB, &property, 0));
    return handle;
}

static void unmap(void)
{
    CHECK(cuMemUnmap(PLACE, 8 * MIB));
}

/* Memory that only its mapping holds is unmapped; at once other memory is mapped at the same place,
 * of a handle of its own or of the one that has just become free. */
static void remap(CUmemGenericAllocationHandle second)
{
    CUmemGenericAllocationHandle one = created(8), two;
    CHECK(cuMemMap(PLACE, 8 * MIB, 0, one, 0));
    CHECK(cuMemRelease(one));
    show("mapped");
    begin(unmap, "cuMemUnmap");
    next_handle = second;
    two = created(2);
    CHECK(cuMemMap(PLACE, 2 * MIB, 0, two, 0));
    end();
    show("remapped");
    CHECK(cuMemRelease(two));
    show("released");
    CHECK(cuMemUnmap(PLACE, 2 * MIB));
    show("unmapped");
}

/* One call unmaps two mappings; meanwhile another thread maps at the second's place. */
static void remap_behind(void)
{
    CUmemGenericAllocationHandle one = created(4), two;
    next_handle = 2;
    two = created(4);
    CHECK(cuMemMap(PLACE, 4 * MIB, 0, one, 0));
    CHECK(cuMemMap(PLACE + 4 * MIB, 4 * MIB, 0, two, 0));
    CHECK(cuMemRelease(one));
    CHECK(cuMemRelease(two));
    show("mapped");
    begin(unmap, "cuMemUnmap");
    next_handle = 3;
    CUmemGenericAllocationHandle three = created(2);
    CHECK(cuMemMap(PLACE + 4 * MIB, 2 * MIB, 0, three, 0));
    end();
    show("remapped");
    CHECK(cuMemUnmap(PLACE + 4 * MIB, 2 * MIB));
    CHECK(cuMemRelease(three));
    show("unmapped");
}

static void unmap_nothing(void)
{
    if (cuMemUnmap(0, 8 * MIB) == CUDA_SUCCESS)
        exit(1);
}

/* The driver refuses to unmap; meanwhile the program gives its own reference back. */
static void refuse_unmap(void)
{
    CUmemGenericAllocationHandle one = created(8);
    CHECK(cuMemMap(0, 8 * MIB, 0, one, 0));
    begin(unmap_nothing, "cuMemUnmap");
    CHECK(cuMemRelease(one));
    end();
    show("refused");
}

static void bind(CUarrayMapInfo *tile)
{
    CHECK(cuMemMapArrayAsync(tile, 1, NULL));
}

static void unbind(void)
{
    CUarrayMapInfo tile = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
                           .memOperationType = CU_MEM_OPERATION_TYPE_UNMAP};
    bind(&tile);
}

/* Memory leaves an array when its stream comes to it. That may wait for us: we map other memory. */
static void map_while_unbinding(void)
{
    CUmemGenericAllocationHandle one = created(8);
    CUarrayMapInfo tile = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
                           .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
                           .memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
                           .memHandle.memHandle = one};
    bind(&tile);
    CHECK(cuMemRelease(one));
    show("bound");
    begin(unbind, "cuStreamSynchronize");
    next_handle = 2;
    CHECK(cuMemMap(PLACE, 2 * MIB, 0, created(2), 0));
    end();
    show("unbound");
}

/* ---- libraries ------------------------------------------------------------------------------- */

static CUlibrary loaded(uint64_t mib)
{
    CUlibrary library;
    char *text = malloc(mib * MIB + 1); /* as PTX: charged by its length */
    memset(text, ' ', mib * MIB);
    text[mib * MIB] = 0;
    CHECK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    free(text);
    return library;
}

static CUlibrary library;

static void unload(void)
{
    CHECK(cuLibraryUnload(library));
}

static void reload(void)
{
    library = loaded(1);
    show("loaded");
    begin(unload, "cuLibraryUnload");
    CUlibrary again = loaded(3);
    end();
    show("reloaded");
    CHECK(cuLibraryUnload(again));
    show("unloaded");
}

/* ---- contexts -------------------------------------------------------------------------------- */

static CUcontext context;

static void create_context(void)
{
    CHECK(cuCtxCreate(&context, NULL, 0, 0));
}

static void destroy_context(void)
{
    CUresult result = cuCtxDestroy(context);
    if (result != (is_context_kept ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS))
        printf("cuCtxDestroy: %d\n", result);
}

static void allocate_in(CUcontext its, uint64_t mib)
{
    CUdeviceptr address;
    current_context = its;
    CHECK(cuMemAlloc(&address, mib * MIB));
}

/* A context takes long to be made. Meanwhile we make and end another one. */
static void create_while_creating(void)
{
    CUcontext other;
    begin(create_context, "cuCtxCreate_v4");
    CHECK(cuCtxCreate(&other, NULL, 0, 0));
    allocate_in(other, 8);
    CHECK(cuCtxDestroy(other));
    end();
    show("created");
    destroy_context();
    show("ended");
}

/* A context takes long to end. Meanwhile we make another one, which gets its handle, and use it. */
static void create_while_destroying(void)
{
    create_context();
    allocate_in(context, 8);
    show("created");
    CUcontext again, old = context;
    begin(destroy_context, "cuCtxDestroy_v2");
    CHECK(cuCtxCreate(&again, NULL, 0, 0));
    if (again != old)
        printf("another handle\n");
    allocate_in(again, 2);
    end();
    show("again");
    CHECK(cuCtxDestroy(again));
    show("ended");
}

/* The driver refuses to end a context: all in it stays charged. */
static void refuse_destroy(void)
{
    create_context();
    allocate_in(context, 8);
    is_context_kept = 1;
    destroy_context();
    show("refused");
    is_context_kept = 0;
    destroy_context();
    show("ended");
}

static void set_limit(void)
{
    CHECK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20));
}

/* A limit of a context takes long to be set. Meanwhile we set one of another context. */
static void limit_while_limiting(void)
{
    begin(set_limit, "cuCtxSetLimit");
    current_context = (CUcontext)128;
    set_limit();
    end();
    show("set");
}

/* ---- memory that a stream frees -------------------------------------------------------------- */

static CUdeviceptr allocation(uint64_t mib)
{
    CUdeviceptr address;
    CHECK(cuMemAlloc(&address, mib * MIB));
    return address;
}

static CUdeviceptr given_back;

static void give_back(void)
{
    CHECK(cuMemFreeAsync(given_back, NULL));
}

/* A thread asks whether a stream has come to what it frees. Meanwhile we free, allocate, and need
 * the room. */
static void free_while_asking(void)
{
    CUdeviceptr other = allocation(8);
    given_back = allocation(4);
    has_events = 1;
    show("allocated");
    begin(give_back, "cuEventQuery");
    CHECK(cuMemFreeAsync(other, NULL));
    show("freed");
    allocation(2);
    end();
    show("both");
}

/* ---- pools ----------------------------------------------------------------------------------- */

static CUmemoryPool pool;
static CUresult allocated;

static CUmemoryPool made(void)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool fresh;
    CHECK(cuMemPoolCreate(&fresh, &properties));
    return fresh;
}

static CUdeviceptr taken(CUmemoryPool from)
{
    CUdeviceptr address;
    CHECK(cuMemAllocFromPoolAsync(&address, 16 * MIB, from, NULL));
    return address;
}

static void destroy(void)
{
    CHECK(cuMemPoolDestroy(pool));
}

static void allocate(void)
{
    CUdeviceptr address;
    allocated = cuMemAllocFromPoolAsync(&address, 16 * MIB, pool, NULL);
}

/* The last allocation of a pool is freed while the pool is being destroyed. */
static void free_while_destroyed(void)
{
    CUdeviceptr last;
    taken(made());
    pool = made();
    last = taken(pool);
    show("two");
    begin(destroy, "cuMemPoolDestroy");
    CHECK(cuMemFreeAsync(last, NULL));
    end();
    show("one");
}

/* A pool with stock is destroyed while an allocation from it is on its way, which then fails. */
static void destroy_while_allocating(void)
{
    pool = made();
    CHECK(cuMemFreeAsync(taken(pool), NULL));
    show("stock");
    begin(allocate, "cuMemAllocFromPoolAsync");
    CHECK(cuMemPoolDestroy(pool));
    end();
    show(allocated == CUDA_ERROR_INVALID_VALUE ? "destroyed" : "allocated");
}

/* An allocation took more than there was room for, and is undone, which waits for its stream. That
 * may wait for us: we free memory of another pool, and destroy this one. */
static void undo(int is_destroyed)
{
    CUdeviceptr other = taken(made());
    pool = made();
    surplus_bytes = 512 * MIB;
    begin(allocate, "cuStreamSynchronize");
    surplus_bytes = 0;
    CHECK(cuMemFreeAsync(other, NULL));
    if (is_destroyed)
        CHECK(cuMemPoolDestroy(pool));
    end();
    show(allocated == CUDA_ERROR_OUT_OF_MEMORY ? "refused" : "allocated");
}

/* The driver gives stock back to the GPU, and at once the pool grows by as much, so that its size
 * tells nothing. At the limit no allocation may pass for what was free in the stock before. */
static void grow_while_trimmed(void)
{
    CUdeviceptr large;
    pool = made();
    CHECK(cuMemFreeAsync(taken(pool), NULL));
    show("stock");
    is_trimmed = 1;
    CHECK(cuMemAllocFromPoolAsync(&large, 32 * MIB, pool, NULL));
    is_trimmed = 0;
    show("grown");
    created(224);
    allocate();
    show(allocated == CUDA_ERROR_OUT_OF_MEMORY ? "refused" : "allocated");
    printf("reserved at most %.0f\n", (double)most_reserved / (double)MIB);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    sem_init(&reached, 0, 0);
    sem_init(&go_on, 0, 0);
    CHECK(cuInit(0));
    if (!strcmp(name, "remap"))
        remap(2);
    else if (!strcmp(name, "remap-same-handle"))
        remap(1);
    else if (!strcmp(name, "remap-behind"))
        remap_behind();
    else if (!strcmp(name, "refuse-unmap"))
        refuse_unmap();
    else if (!strcmp(name, "map-while-unbinding"))
        map_while_unbinding();
    else if (!strcmp(name, "reload"))
        reload();
    else if (!strcmp(name, "create-while-creating"))
        create_while_creating();
    else if (!strcmp(name, "create-while-destroying"))
        create_while_destroying();
    else if (!strcmp(name, "refuse-destroy"))
        refuse_destroy();
    else if (!strcmp(name, "limit-while-limiting"))
        limit_while_limiting();
    else if (!strcmp(name, "free-while-asking"))
        free_while_asking();
    else if (!strcmp(name, "free-while-destroyed"))
        free_while_destroyed();
    else if (!strcmp(name, "destroy-while-allocating"))
        destroy_while_allocating();
    else if (!strcmp(name, "grow-while-trimmed"))
        grow_while_trimmed();
    else if (!strcmp(name, "undo"))
        undo(0);
    else if (!strcmp(name, "undo-destroyed"))
        undo(1);
    else
        return 2;
    return 0;
}

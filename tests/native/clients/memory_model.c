/* Random calls of all paths of device memory, and after each the bytes by a model of its own: what
 * the addresses say (blocks in use), sizes rounded as the README says, what pools report.
 * memory_model CALLS SEED: prints the calls made, exits with 1 at the first difference. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 200
#define BLOCK (2ull << 20)
enum kind {
    NONE,
    SMALL,
    LARGE,
    PITCH,
    MANAGED,
    ARRAY,
    MIPMAP,
    PHYSICAL,
    ASYNC,
    POOL,
    MODULE,
    LIBRARY,
    HOST,
    CONTEXT,
    KINDS
};
struct thing {
    enum kind kind;
    unsigned long long handle, bytes; /* bytes: what the model charges for it */
    CUdeviceptr address;              /* where it is mapped, or lies */
    int held, mapped, context;
};
static struct thing things[MOST];
static CUcontext contexts[MOST]; /* contexts[i]: thing i, where it is one; [0] the primary */
static unsigned long long state, context_bytes, pages[1 << 20];
static CUmemoryPool standard;

static unsigned long long draw(unsigned long long below)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % below;
}

static unsigned long long up(unsigned long long bytes, unsigned long long step)
{
    return (bytes + step - 1) / step * step;
}

static unsigned long long level(unsigned long long w, unsigned long long h)
{
    return up(up(w * 16, 64) * up(h, 8), 64 << 10);
}

static unsigned long long expected(void)
{
    unsigned long long sum = context_bytes, n = 0, reserved;
    for (int i = 1; i < MOST; i++) {
        sum += things[i].bytes;
        if (things[i].kind == SMALL) { /* blocks in use: one per page number */
            unsigned long long page = things[i].address / BLOCK, known = 0;
            while (known < n && pages[known] != page)
                known++;
            if (known == n)
                pages[n++] = page;
        }
        if (things[i].kind == POOL) {
            cuMemPoolGetAttribute((CUmemoryPool)things[i].handle,
                                  CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
            sum += reserved;
        }
    }
    cuMemPoolGetAttribute(standard, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    return sum + n * BLOCK + reserved;
}

static CUresult make(struct thing *t, int at)
{
    CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}};
    CUmemPoolProps pp = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}};
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = draw(1000) + 1,
                                 .Height = draw(1000) + 1,
                                 .Format = CU_AD_FORMAT_FLOAT,
                                 .NumChannels = 4};
    unsigned long long bytes = draw(64 << 20) + (1 << 20) + 1;
    size_t pitch;
    static char image[1 << 16];
    CUresult r;
    *t = (struct thing){.kind = (enum kind)(draw(KINDS - 1) + 1), .held = 1};
    switch (t->kind) {
    case SMALL: return cuMemAlloc(&t->address, draw(1 << 20) + 1);
    case LARGE: t->bytes = up(bytes, BLOCK); return cuMemAlloc(&t->address, bytes);
    case PITCH:
        r = cuMemAllocPitch(&t->address, &pitch, 3000000, draw(5) + 1, 4);
        return r ? r
                 : cuMemGetAddressRange(NULL, (size_t *)&t->bytes, t->address) ||
                       !(t->bytes = up(t->bytes, BLOCK));
    case MANAGED:
        t->bytes = up(bytes, BLOCK);
        return cuMemAllocManaged(&t->address, bytes, CU_MEM_ATTACH_GLOBAL);
    case ARRAY:
        t->bytes = up(level(d.Width, d.Height), BLOCK);
        return cuArray3DCreate((CUarray *)&t->handle, &d);
    case MIPMAP:
        t->bytes = up(level(d.Width, d.Height) +
                          level(d.Width / 2 ? d.Width / 2 : 1, d.Height / 2 ? d.Height / 2 : 1),
                      BLOCK);
        if (d.Width < 2 && d.Height < 2)
            t->bytes = up(level(d.Width, d.Height), BLOCK);
        return cuMipmappedArrayCreate((CUmipmappedArray *)&t->handle, &d, 2);
    case PHYSICAL:
        t->bytes = up(bytes, BLOCK);
        r = cuMemAddressReserve(&t->address, t->bytes, 0, 0, 0);
        return r ? r : cuMemCreate(&t->handle, t->bytes, &p, 0);
    case ASYNC: return cuMemAllocAsync(&t->address, bytes, NULL);
    case POOL:
        r = cuMemPoolCreate((CUmemoryPool *)&t->handle, &pp);
        return r ? r : cuMemAllocFromPoolAsync(&t->address, bytes, (CUmemoryPool)t->handle, NULL);
    case MODULE:
    case LIBRARY:
        memset(image, ' ', sizeof image);
        memcpy(image, ".version 8", 10);
        image[100 + draw(60000)] = 0;
        t->bytes = up(strlen(image), 4096);
        return t->kind == MODULE ? cuModuleLoadData((CUmodule *)&t->handle, image)
                                 : cuLibraryLoadData((CUlibrary *)&t->handle, image, NULL, NULL, 0,
                                                     NULL, NULL, 0);
    case HOST: return cuMemHostAlloc((void **)&t->address, draw(1 << 20) + 1, 0);
    default:
        t->bytes = context_bytes;
        r = cuCtxCreate(&contexts[at], NULL, 0, 0);
        return r ? r
                 : cuMemAlloc(&t->address, 100) || cuCtxPopCurrent(NULL) || !(t->bytes += BLOCK);
    }
}

/* One step towards its end; done: it is gone. */
static CUresult end(struct thing *t, int at, int *done)
{
    *done = 1;
    switch (t->kind) {
    case SMALL:
    case LARGE:
    case PITCH:
    case MANAGED: return draw(2) ? cuMemFree(t->address) : cuMemFreeAsync(t->address, NULL);
    case ARRAY: return cuArrayDestroy((CUarray)t->handle);
    case MIPMAP: return cuMipmappedArrayDestroy((CUmipmappedArray)t->handle);
    case PHYSICAL: /* holds and mappings come and go; the last one ends it */
        *done = 0;
        switch (draw(4)) {
        case 0:
            if (t->mapped || !t->held)
                return CUDA_SUCCESS;
            t->mapped = 1;
            return cuMemMap(t->address, t->bytes, 0, t->handle, 0);
        case 1:
            if (!t->mapped)
                return CUDA_SUCCESS;
            t->held++;
            return cuMemRetainAllocationHandle(&t->handle, (void *)t->address);
        case 2:
            if (!t->mapped)
                return CUDA_SUCCESS;
            t->mapped = 0;
            *done = !t->held;
            return cuMemUnmap(t->address, t->bytes) ||
                   (*done && cuMemAddressFree(t->address, t->bytes));
        default:
            if (!t->held)
                return CUDA_SUCCESS;
            t->held--;
            *done = !t->held && !t->mapped;
            return cuMemRelease(t->handle) || (*done && cuMemAddressFree(t->address, t->bytes));
        }
    case ASYNC: return draw(2) ? cuMemFree(t->address) : cuMemFreeAsync(t->address, NULL);
    case POOL: return cuMemFreeAsync(t->address, NULL) || cuMemPoolDestroy((CUmemoryPool)t->handle);
    case MODULE: return cuModuleUnload((CUmodule)t->handle);
    case LIBRARY: return cuLibraryUnload((CUlibrary)t->handle);
    case HOST: return cuMemFreeHost((void *)t->address);
    default: return cuCtxDestroy(contexts[at]);
    }
}

int main(int argc, char **argv)
{
    size_t left, total;
    if (argc < 3)
        return 2;
    long calls = atol(argv[1]);
    state = strtoull(argv[2], NULL, 10) * 7919 + 1;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&contexts[0], 0) || cuCtxSetCurrent(contexts[0]) ||
        cuDeviceGetDefaultMemPool(&standard, 0) || cuMemGetInfo(&left, &total))
        return 2;
    context_bytes = total - left;
    for (long i = 0; i < calls; i++) {
        int at = (int)draw(MOST - 1) + 1, done = 0;
        struct thing *t = &things[at];
        enum kind kind = t->kind;
        CUresult r;
        if (kind) {
            r = end(t, at, &done);
            if (done)
                *t = (struct thing){0};
        } else {
            r = make(t, at);
            kind = t->kind;
            if (r == CUDA_ERROR_OUT_OF_MEMORY && kind != PHYSICAL && kind != CONTEXT &&
                kind != POOL) {
                *t = (struct thing){0};
                r = CUDA_SUCCESS;
            }
        }
        if (!r && draw(50) == 0)
            r = cuCtxSynchronize();
        if (!r)
            r = cuMemGetInfo(&left, &total);
        if (r || total - left != expected()) {
            printf("call %ld, kind %d %s: result %d, used %zu, expected %llu\n", i, kind,
                   done ? "ended" : "made", r, total - left, expected());
            return 1;
        }
    }
    printf("%ld\n", calls);
    return 0;
}

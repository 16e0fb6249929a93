/* Does what it is told, a line at a time: "alloc a 1000" ... and answers "RESULT [VALUE]". Names
 * stand for addresses and handles. The driver's calls are those that cuda.h declares, by
 * linking. */
#define _GNU_SOURCE
#include <cuda.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    char name[32];
    unsigned long long value;
} slots[8192];

static unsigned long long *slot(const char *name)
{
    int i = 0;
    while (slots[i].name[0] && strcmp(slots[i].name, name))
        i++;
    if (!slots[i].name[0])
        snprintf(slots[i].name, sizeof slots[i].name, "%s", name);
    return &slots[i].value;
}

static CUmemAllocationProp properties(int device, int shareable)
{
    CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
    p.location.type = device < 0 ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = device < 0 ? 0 : device;
    p.requestedHandleTypes =
        shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
    return p;
}

static char *image(size_t bytes) /* PTX text of that length */
{
    char *text = malloc(bytes + 1);
    memset(text, ' ', bytes);
    memcpy(text, ".version 8.0\n", 13);
    text[bytes] = 0;
    return text;
}

int main(void)
{
    char line[256], what[32], name[32], other[32];
    if (cuInit(0)) {
        puts("no driver");
        return 1;
    }
    while (fgets(line, sizeof line, stdin)) {
        unsigned long long a = 0, b = 0, c = 0, *v;
        int r = -1;
        unsigned long long value = 0;
        name[0] = other[0] = 0;
        if (sscanf(line, "%31s %31s", what, name) < 1)
            continue;
        sscanf(line, "%*s %*s %llu %llu %llu", &a, &b, &c);
        sscanf(line, "%*s %*s %31s", other);
        v = slot(name[0] ? name : "-");
        if (!strcmp(what, "retain")) {
            r = cuDevicePrimaryCtxRetain((CUcontext *)v, (int)a);
            if (!r)
                r = cuCtxSetCurrent((CUcontext)*v);
        } else if (!strcmp(what, "release"))
            r = cuDevicePrimaryCtxRelease((int)a);
        else if (!strcmp(what, "create"))
            r = cuCtxCreate((CUcontext *)v, NULL, 0, (int)a);
        else if (!strcmp(what, "destroy"))
            r = cuCtxDestroy((CUcontext)*v);
        else if (!strcmp(what, "limit"))
            r = cuCtxSetLimit((CUlimit)a, b);
        else if (!strcmp(what, "alloc"))
            r = cuMemAlloc((CUdeviceptr *)v, a);
        else if (!strcmp(what, "managed"))
            r = cuMemAllocManaged((CUdeviceptr *)v, a, CU_MEM_ATTACH_GLOBAL);
        else if (!strcmp(what, "pitch")) {
            size_t pitch;
            r = cuMemAllocPitch((CUdeviceptr *)v, &pitch, a, b, 4);
            value = pitch;
        } else if (!strcmp(what, "free"))
            r = cuMemFree(*v);
        else if (!strcmp(what, "info")) {
            size_t left, total;
            r = cuMemGetInfo(&left, &total);
            value = left;
        } else if (!strcmp(what, "array")) {
            CUDA_ARRAY3D_DESCRIPTOR d = {.Width = a,
                                         .Height = b,
                                         .Depth = c,
                                         .Format = CU_AD_FORMAT_FLOAT,
                                         .NumChannels = 4};
            r = cuArray3DCreate((CUarray *)v, &d);
        } else if (!strcmp(what, "adestroy"))
            r = cuArrayDestroy((CUarray)*v);
        else if (!strcmp(what, "mipmap")) {
            CUDA_ARRAY3D_DESCRIPTOR d = {
                .Width = a, .Height = b, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
            r = cuMipmappedArrayCreate((CUmipmappedArray *)v, &d, (unsigned)c);
        } else if (!strcmp(what, "mdestroy"))
            r = cuMipmappedArrayDestroy((CUmipmappedArray)*v);
        else if (!strcmp(what, "sparse")) {
            CUDA_ARRAY3D_DESCRIPTOR d = {.Width = a,
                                         .Height = b,
                                         .Format = CU_AD_FORMAT_FLOAT,
                                         .NumChannels = 4,
                                         .Flags = CUDA_ARRAY3D_SPARSE};
            r = cuArray3DCreate((CUarray *)v, &d);
        } else if (!strcmp(what, "amap") || !strcmp(what, "aunmap")) { /* array handle x */
            sscanf(line, "%*s %*s %*s %llu", &a);
            CUarrayMapInfo m = {
                .resourceType = CU_RESOURCE_TYPE_ARRAY,
                .resource.array = (CUarray)*v,
                .subresource.sparseLevel = {.offsetX = (unsigned)a, .extentWidth = 1},
                .memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
                .deviceBitMask = 1};
            m.memOperationType =
                what[1] == 'm' ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
            m.memHandle.memHandle = *slot(other);
            r = cuMemMapArrayAsync(&m, 1, NULL);
        } else if (!strcmp(what, "multicast")) {
            CUmulticastObjectProp p = {.numDevices = 1, .size = a};
            r = cuMulticastCreate((CUmemGenericAllocationHandle *)v, &p);
            r = r ? r : (int)cuMulticastAddDevice(*v, 0);
        } else if (!strcmp(what, "bind")) { /* object handle bytes */
            sscanf(line, "%*s %*s %*s %llu", &a);
            r = cuMulticastBindMem(*v, 0, *slot(other), 0, a, 0);
        } else if (!strcmp(what, "unbind"))
            r = cuMulticastUnbind(*v, 0, 0, a);
        else if (!strcmp(what, "physical")) { /* name bytes device shareable */
            CUmemAllocationProp p = properties((int)b, (int)c);
            r = cuMemCreate((CUmemGenericAllocationHandle *)v, a, &p, 0);
        } else if (!strcmp(what, "hostphysical")) {
            CUmemAllocationProp p = properties(-1, 0);
            r = cuMemCreate((CUmemGenericAllocationHandle *)v, a, &p, 0);
        } else if (!strcmp(what, "drop"))
            r = cuMemRelease(*v);
        else if (!strcmp(what, "reserve"))
            r = cuMemAddressReserve((CUdeviceptr *)v, a, 0, 0, 0);
        else if (!strcmp(what, "unreserve"))
            r = cuMemAddressFree(*v, a);
        else if (!strcmp(what, "map")) { /* address handle bytes offset */
            sscanf(line, "%*s %*s %*s %llu %llu", &a, &b);
            r = cuMemMap(*v + b, a, 0, *slot(other), 0);
        } else if (!strcmp(what, "unmap"))
            r = cuMemUnmap(*v + b, a);
        else if (!strcmp(what, "handle"))
            r = cuMemRetainAllocationHandle((CUmemGenericAllocationHandle *)v,
                                            (void *)*slot(other));
        else if (!strcmp(what, "export")) {
            int fd = -1;
            r = cuMemExportToShareableHandle(&fd, *slot(other),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
            *v = value = (unsigned)fd;
        } else if (!strcmp(what, "import")) { /* name pid fd */
            char path[64];
            snprintf(path, sizeof path, "/proc/%llu/fd/%llu", a, b);
            int fd = open(path, O_RDWR);
            r = cuMemImportFromShareableHandle((CUmemGenericAllocationHandle *)v, (void *)(long)fd,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
            close(fd);
        } else if (!strcmp(what, "close"))
            r = close((int)*v);
        else if (!strcmp(what, "async"))
            r = cuMemAllocAsync((CUdeviceptr *)v, a, NULL);
        else if (!strcmp(what, "afree"))
            r = cuMemFreeAsync(*v, NULL);
        else if (!strcmp(what, "pool")) {
            CUmemPoolProps p = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, {(int)a}}};
            r = cuMemPoolCreate((CUmemoryPool *)v, &p);
        } else if (!strcmp(what, "frompool")) { /* name pool bytes */
            sscanf(line, "%*s %*s %*s %llu", &a);
            r = cuMemAllocFromPoolAsync((CUdeviceptr *)v, a, (CUmemoryPool)*slot(other), NULL);
        } else if (!strcmp(what, "defpool"))
            r = cuDeviceGetDefaultMemPool((CUmemoryPool *)v, (int)a);
        else if (!strcmp(what, "keep"))
            r = cuMemPoolSetAttribute((CUmemoryPool)*v, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &a);
        else if (!strcmp(what, "attribute"))
            r = cuMemPoolGetAttribute((CUmemoryPool)*v, (CUmemPool_attribute)a, &value);
        else if (!strcmp(what, "trim"))
            r = cuMemPoolTrimTo((CUmemoryPool)*v, a);
        else if (!strcmp(what, "pdestroy"))
            r = cuMemPoolDestroy((CUmemoryPool)*v);
        else if (!strcmp(what, "sync"))
            r = cuCtxSynchronize();
        else if (!strcmp(what, "module")) {
            char *text = image(a);
            r = cuModuleLoadData((CUmodule *)v, text);
            free(text);
        } else if (!strcmp(what, "unload"))
            r = cuModuleUnload((CUmodule)*v);
        else if (!strcmp(what, "library")) {
            char *text = image(a);
            r = cuLibraryLoadData((CUlibrary *)v, text, NULL, NULL, 0, NULL, NULL, 0);
            free(text);
        } else if (!strcmp(what, "lunload"))
            r = cuLibraryUnload((CUlibrary)*v);
        else if (!strcmp(what, "ipc")) { /* name of an address: prints the handle */
            CUipcMemHandle h;
            r = cuIpcGetMemHandle(&h, *v);
            printf("%d ", r);
            for (size_t i = 0; i < sizeof h; i++)
                printf("%02x", (unsigned char)h.reserved[i]);
            puts("");
            fflush(stdout);
            continue;
        } else if (!strcmp(what, "open")) {
            char hex[160];
            CUipcMemHandle h;
            sscanf(line, "%*s %*s %159s", hex);
            for (size_t i = 0; i < sizeof h; i++) {
                unsigned byte;
                sscanf(hex + 2 * i, "%2x", &byte);
                h.reserved[i] = (char)byte;
            }
            r = cuIpcOpenMemHandle((CUdeviceptr *)v, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        } else if (!strcmp(what, "ipcclose"))
            r = cuIpcCloseMemHandle(*v);
        else if (!strcmp(what, "host"))
            r = cuMemHostAlloc((void **)v, a, 0);
        else if (!strcmp(what, "hfree"))
            r = cuMemFreeHost((void *)*v);
        else if (!strcmp(what, "fill"))
            r = cuMemsetD8(*v + b, (unsigned char)c, a);
        else if (!strcmp(what, "read")) {
            unsigned char byte = 0;
            r = cuMemcpyDtoH(&byte, *v + a, 1);
            value = byte;
        } else if (!strcmp(what, "green")) {
            CUdevResource sm, part;
            CUdevResourceDesc d;
            unsigned groups = 1;
            r = cuDeviceGetDevResource((int)a, &sm, CU_DEV_RESOURCE_TYPE_SM);
            r = r ? r : (int)cuDevSmResourceSplitByCount(&part, &groups, &sm, NULL, 0, (unsigned)b);
            r = r ? r : (int)cuDevResourceGenerateDesc(&d, &part, 1);
            r = r ? r
                  : (int)cuGreenCtxCreate((CUgreenCtx *)v, d, (int)a, CU_GREEN_CTX_DEFAULT_STREAM);
            value = part.sm.smCount;
        } else if (!strcmp(what, "ungreen"))
            r = cuGreenCtxDestroy((CUgreenCtx)*v);
        else if (!strcmp(what, "fork")) { /* what a child's first call gives */
            int pipes[2];
            if (pipe(pipes))
                return 2;
            if (!fork()) {
                int count, result = cuInit(0);
                result = result ? result : (int)cuDeviceGetCount(&count);
                _exit(write(pipes[1], &result, sizeof result) < 0);
            }
            r = 0;
            int result = -1;
            if (read(pipes[0], &result, sizeof result) < 0)
                return 2;
            value = (unsigned)result;
            close(pipes[0]);
            close(pipes[1]);
        } else if (!strcmp(what, "exec")) {
            /* what comes after that line is the next program's */
            puts("0 0");
            fflush(stdout);
            execl("/proc/self/exe", "memory_shell", (char *)NULL);
        }
        printf("%d %llu\n", r, value);
        fflush(stdout);
    }
    return 0;
}

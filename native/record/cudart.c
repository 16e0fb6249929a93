/* A CUDA runtime of our own (libcudart.so.12), for recording only: as much of it as PyTorch 2.5
 * imports, each function by the driver calls that its documentation names.
 *
 * NVIDIA's runtime does not start on the fake driver: it asks cuGetExportTable for undocumented
 * tables, which the fake does not imitate. PyTorch links to the runtime dynamically, so with
 * this in its place PyTorch's own allocator, autograd, graphs and error handling run unaltered,
 * and the driver calls they lead to can be recorded (record.c) and replayed
 * (tests/native/sequences). As the real one, it finds the driver by dlsym(cuGetProcAddress_v2)
 * and everything else by that.
 *
 * Compiled against the headers that the recorded PyTorch brings (native/record/build.mk).
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define VERSION 12040

static CUresult (*get_proc)(const char *, void **, int, cuuint64_t,
                            CUdriverProcAddressQueryResult *);
static __thread cudaError_t last_error;
static __thread int device;
static __thread int bound = -1; /* whose primary context is current on this thread */
static CUcontext contexts[16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The runtime asks for a base name at a version; the headers' macros name the variant. */
static void *driver(const char *variant)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult found;
    char name[64];
    size_t n = (size_t)snprintf(name, sizeof name, "%s", variant);
    int version =
        strstr(name, "GetCaptureInfo") ? 11030 : VERSION; /* later ones have more arguments */

    if (n > 3 && !strncmp(name + n - 3, "_v", 2))
        name[n - 3] = 0;

    if (!get_proc) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        if (library)
            *(void **)&get_proc = dlsym(library, "cuGetProcAddress_v2");
        if (!get_proc) {
            fprintf(stderr, "record: no libcuda.so.1 with cuGetProcAddress_v2 was found\n");
            return NULL;
        }
    }
    if (get_proc(name, &function, version, 0, &found) || !function)
        fprintf(stderr, "record: the driver has no %s\n", name);
    return function;
}

#define DRIVER(base)                                                                               \
    ({                                                                                             \
        static __typeof__(&base) function;                                                         \
        if (!function)                                                                             \
            *(void **)&function = driver(#base);                                                   \
        function;                                                                                  \
    })

static cudaError_t
done(CUresult result) /* both enumerations give the same numbers to what occurs here */
{
    if (result)
        last_error = (cudaError_t)result;
    return (cudaError_t)result;
}

static int ready(void) /* cuInit once, and the primary context current; 0 or an error */
{
    static int begun;
    CUresult result = CUDA_SUCCESS;

    pthread_mutex_lock(&lock);
    if (!begun && !(result = DRIVER(cuInit) ? DRIVER(cuInit)(0) : CUDA_ERROR_NO_DEVICE))
        begun = 1;
    if (!result && bound != device) {
        if (!contexts[device])
            result = DRIVER(cuDevicePrimaryCtxRetain)(&contexts[device], device);
        if (!result)
            result = DRIVER(cuCtxSetCurrent)(contexts[device]);
        if (!result)
            bound = device;
    }
    pthread_mutex_unlock(&lock);
    return result;
}
#define READY()                                                                                    \
    do {                                                                                           \
        CUresult r_ = ready();                                                                     \
        if (r_)                                                                                    \
            return done(r_);                                                                       \
    } while (0)
#define CALL(base, ...)                                                                            \
    do {                                                                                           \
        READY();                                                                                   \
        return done(DRIVER(base)(__VA_ARGS__));                                                    \
    } while (0)
#define POINTER(p) ((CUdeviceptr)(uintptr_t)(p))

/* One line per call reads as a table. */
/* clang-format off */

/* ---- errors, devices ------------------------------------------------------------------------- */
API cudaError_t cudaGetLastError(void) { cudaError_t e = last_error; last_error = 0; return e; }
API cudaError_t cudaPeekAtLastError(void) { return last_error; }
API const char *cudaGetErrorName(cudaError_t e)
{
    const char *text = "cudaErrorUnknown";
    DRIVER(cuGetErrorName)((CUresult)e, &text);
    return text;
}
API const char *cudaGetErrorString(cudaError_t e)
{
    const char *text = "unknown error";
    if (e == cudaErrorMemoryAllocation)
        return "out of memory";
    DRIVER(cuGetErrorString)((CUresult)e, &text);
    return text;
}
API cudaError_t cudaRuntimeGetVersion(int *v) { *v = VERSION; return 0; }
API cudaError_t cudaDriverGetVersion(int *v) { return done(DRIVER(cuDriverGetVersion)(v)); }
API cudaError_t cudaGetDeviceCount(int *n)
{
    CUresult result;
    *n = 0;
    if (!driver("cuInit") || (result = DRIVER(cuInit)(0)))
        return done(CUDA_ERROR_NO_DEVICE);
    return done(DRIVER(cuDeviceGetCount)(n));
}
API cudaError_t cudaGetDevice(int *d) { *d = device; return 0; }
API cudaError_t cudaSetDevice(int d) { device = d; READY(); return 0; }
API cudaError_t cudaDeviceGetAttribute(int *v, enum cudaDeviceAttr a, int d) { CALL(cuDeviceGetAttribute, v, (CUdevice_attribute)a, d); }
API cudaError_t cudaDeviceSynchronize(void) { READY(); return done(DRIVER(cuCtxSynchronize)()); }
API cudaError_t cudaDeviceCanAccessPeer(int *v, int a, int b) { CALL(cuDeviceCanAccessPeer, v, a, b); }
API cudaError_t cudaDeviceEnablePeerAccess(int d, unsigned f) { CALL(cuCtxEnablePeerAccess, contexts[d], f); }
API cudaError_t cudaDeviceGetPCIBusId(char *text, int n, int d) { CALL(cuDeviceGetPCIBusId, text, n, d); }
API cudaError_t cudaDeviceGetStreamPriorityRange(int *low, int *high) { CALL(cuCtxGetStreamPriorityRange, low, high); }
API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *p, int d) { CALL(cuDeviceGetDefaultMemPool, (CUmemoryPool *)p, d); }
API cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *p, int d)
{
#define ATTRIBUTE(field, name) DRIVER(cuDeviceGetAttribute)((int *)&p->field, CU_DEVICE_ATTRIBUTE_##name, d)
    READY();
    memset(p, 0, sizeof *p);
    DRIVER(cuDeviceGetName)(p->name, sizeof p->name, d);
    DRIVER(cuDeviceTotalMem)(&p->totalGlobalMem, d);
    DRIVER(cuDeviceGetUuid)((CUuuid *)&p->uuid, d);
    ATTRIBUTE(major, COMPUTE_CAPABILITY_MAJOR);
    ATTRIBUTE(minor, COMPUTE_CAPABILITY_MINOR);
    ATTRIBUTE(multiProcessorCount, MULTIPROCESSOR_COUNT);
    ATTRIBUTE(pciDomainID, PCI_DOMAIN_ID); /* PyTorch finds its GPU in NVML by these */
    ATTRIBUTE(pciBusID, PCI_BUS_ID);
    ATTRIBUTE(pciDeviceID, PCI_DEVICE_ID);
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsPerMultiProcessor = 2048;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->sharedMemPerBlock = p->sharedMemPerBlockOptin = 49152;
    p->sharedMemPerMultiprocessor = 49152 * 2;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->textureAlignment = 512;
    p->l2CacheSize = 50 << 20;
    p->unifiedAddressing = p->concurrentKernels = p->managedMemory = p->memoryPoolsSupported = 1;
    return 0;
}

/* ---- memory
 * ------------------------------------------------------------------------------------ */
API cudaError_t cudaMalloc(void **p, size_t n) { CALL(cuMemAlloc, (CUdeviceptr *)p, n); }
API cudaError_t cudaFree(void *p) { READY(); return p ? done(DRIVER(cuMemFree)(POINTER(p))) : 0; }
API cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s) { CALL(cuMemAllocAsync, (CUdeviceptr *)p, n, s); }
API cudaError_t cudaFreeAsync(void *p, cudaStream_t s) { CALL(cuMemFreeAsync, POINTER(p), s); }
API cudaError_t cudaMemGetInfo(size_t *free_, size_t *total) { CALL(cuMemGetInfo, free_, total); }
API cudaError_t cudaHostAlloc(void **p, size_t n, unsigned f) { CALL(cuMemHostAlloc, p, n, f); }
API cudaError_t cudaFreeHost(void *p) { CALL(cuMemFreeHost, p); }
API cudaError_t cudaHostRegister(void *p, size_t n, unsigned f) { CALL(cuMemHostRegister, p, n, f); }
API cudaError_t cudaHostUnregister(void *p) { CALL(cuMemHostUnregister, p); }
API cudaError_t cudaHostGetDevicePointer(void **d, void *p, unsigned f) { CALL(cuMemHostGetDevicePointer, (CUdeviceptr *)d, p, f); }
API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t p, size_t n) { CALL(cuMemPoolTrimTo, (CUmemoryPool)p, n); }
API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void *v) { CALL(cuMemPoolSetAttribute, (CUmemoryPool)p, (CUmemPool_attribute)a, v); }
API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void *v) { CALL(cuMemPoolGetAttribute, (CUmemoryPool)p, (CUmemPool_attribute)a, v); }
API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t p, const struct cudaMemAccessDesc *m, size_t n) { CALL(cuMemPoolSetAccess, (CUmemoryPool)p, (const CUmemAccessDesc *)m, n); }
API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p)
{
    unsigned type = 0;
    READY();
    memset(a, 0, sizeof *a);
    if (DRIVER(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, POINTER(p)))
        return 0; /* as since 11.0: what CUDA does not know is cudaMemoryTypeUnregistered */
    a->type = type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
    a->device = device;
    a->devicePointer = a->hostPointer = (void *)(uintptr_t)p;
    if (a->type == cudaMemoryTypeDevice)
        a->hostPointer = NULL;
    return 0;
}
static cudaError_t copy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, CUstream s)
{
    READY();
    switch (kind) {
    case cudaMemcpyHostToDevice: return done(DRIVER(cuMemcpyHtoDAsync)(POINTER(to), from, n, s));
    case cudaMemcpyDeviceToHost: return done(DRIVER(cuMemcpyDtoHAsync)(to, POINTER(from), n, s));
    case cudaMemcpyDeviceToDevice: return done(DRIVER(cuMemcpyDtoDAsync)(POINTER(to), POINTER(from), n, s));
    default: return done(DRIVER(cuMemcpyAsync)(POINTER(to), POINTER(from), n, s));
    }
}
API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) { return copy(to, from, n, kind, s); }
API cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    READY();
    switch (kind) {
    case cudaMemcpyHostToDevice: return done(DRIVER(cuMemcpyHtoD)(POINTER(to), from, n));
    case cudaMemcpyDeviceToHost: return done(DRIVER(cuMemcpyDtoH)(to, POINTER(from), n));
    default: return done(DRIVER(cuMemcpy)(POINTER(to), POINTER(from), n));
    }
}
API cudaError_t cudaMemset(void *p, int v, size_t n) { CALL(cuMemsetD8, POINTER(p), (unsigned char)v, n); }
API cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t s) { CALL(cuMemsetD8Async, POINTER(p), (unsigned char)v, n, s); }
API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *h, void *p) { CALL(cuIpcGetMemHandle, (CUipcMemHandle *)h, POINTER(p)); }
API cudaError_t cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t h, unsigned f)
{
    CUipcMemHandle handle;
    memcpy(&handle, &h, sizeof handle);
    CALL(cuIpcOpenMemHandle, (CUdeviceptr *)p, handle, f);
}
API cudaError_t cudaIpcCloseMemHandle(void *p) { CALL(cuIpcCloseMemHandle, POINTER(p)); }

/* ---- streams, events, graphs
 * --------------------------------------------------------------------- */
API cudaError_t cudaStreamCreate(cudaStream_t *s) { CALL(cuStreamCreate, s, 0); }
API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned f, int p) { CALL(cuStreamCreateWithPriority, s, f, p); }
API cudaError_t cudaStreamDestroy(cudaStream_t s) { CALL(cuStreamDestroy, s); }
API cudaError_t cudaStreamQuery(cudaStream_t s) { READY(); return (cudaError_t)DRIVER(cuStreamQuery)(s); }
API cudaError_t cudaStreamSynchronize(cudaStream_t s) { CALL(cuStreamSynchronize, s); }
API cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned f) { CALL(cuStreamWaitEvent, s, e, f); }
API cudaError_t cudaStreamGetPriority(cudaStream_t s, int *p) { CALL(cuStreamGetPriority, s, p); }
API cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *v) { CALL(cuStreamIsCapturing, s, (CUstreamCaptureStatus *)v); }
API cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode m) { CALL(cuStreamBeginCapture, s, (CUstreamCaptureMode)m); }
API cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g) { CALL(cuStreamEndCapture, s, g); }
API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *m) { CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)m); }
API cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t s, enum cudaStreamCaptureStatus *v, unsigned long long *id,
                                            cudaGraph_t *g, const cudaGraphNode_t **nodes, size_t *n)
{
    CALL(cuStreamGetCaptureInfo, s, (CUstreamCaptureStatus *)v, (cuuint64_t *)id, g, nodes, n);
}
API cudaError_t cudaEventCreate(cudaEvent_t *e) { CALL(cuEventCreate, e, 0); }
API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned f) { CALL(cuEventCreate, e, f); }
API cudaError_t cudaEventDestroy(cudaEvent_t e) { CALL(cuEventDestroy, e); }
API cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { CALL(cuEventRecord, e, s); }
API cudaError_t cudaEventQuery(cudaEvent_t e) { READY(); return (cudaError_t)DRIVER(cuEventQuery)(e); }
API cudaError_t cudaEventSynchronize(cudaEvent_t e) { CALL(cuEventSynchronize, e); }
API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) { CALL(cuEventElapsedTime, ms, a, b); }
API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long f) { CALL(cuGraphInstantiateWithFlags, x, g, f); }
API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *x, cudaGraph_t g, unsigned long long f) { CALL(cuGraphInstantiateWithFlags, x, g, f); }
API cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *n, size_t *count) { CALL(cuGraphGetNodes, g, n, count); }
API cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) { CALL(cuGraphLaunch, x, s); }
API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) { CALL(cuGraphExecDestroy, x); }
API cudaError_t cudaGraphDestroy(cudaGraph_t g) { CALL(cuGraphDestroy, g); }
API cudaError_t cudaProfilerStart(void) { return 0; }
API cudaError_t cudaProfilerStop(void) { return 0; }

/* ---- kernels: images are registered when a library is loaded, and loaded at the first launch
 * --------- */
struct image { const void *data; CUlibrary library; };
struct kernel { const void *host; struct image *image; CUkernel kernel; };
#define KERNEL "ns_20000" /* the fake knows a kernel's time by its name: all of PyTorch's take 20 us */
static struct kernel *kernels; /* open addressing, a power of two */
static size_t n_kernels, room;

static struct kernel *slot_of(const void *host)
{
    size_t i = ((uintptr_t)host >> 4) * 0x9e3779b97f4a7c15ull & (room - 1);
    while (kernels[i].host && kernels[i].host != host)
        i = (i + 1) & (room - 1);
    return &kernels[i];
}
API void **__cudaRegisterFatBinary(void *wrapper)
{
    struct image *image = calloc(1, sizeof *image);
    image->data = ((void **)wrapper)[1]; /* { magic and version, the image, a name } */
    return (void **)image;
}
API void __cudaRegisterFatBinaryEnd(void **image) { (void)image; }
API void __cudaUnregisterFatBinary(void **image) { (void)image; }
API char __cudaInitModule(void **image) { (void)image; return 1; }
API void __cudaRegisterVar(void **a, char *b, char *c, const char *d, int e, size_t f, int g, int h) { (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h; }
API void __cudaRegisterFunction(void **image, const char *host, char *stub, const char *name, int limit,
                                void *t, void *b, void *bd, void *gd, int *w)
{
    (void)stub, (void)name, (void)limit, (void)t, (void)b, (void)bd, (void)gd, (void)w;
    if (2 * n_kernels >= room) {
        struct kernel *old = kernels;
        size_t n = room;
        room = room ? 2 * room : 1 << 14;
        kernels = calloc(room, sizeof *kernels);
        for (size_t i = 0; i < n; i++)
            if (old[i].host)
                *slot_of(old[i].host) = old[i];
        free(old);
    }
    *slot_of(host) = (struct kernel){host, (struct image *)image, NULL};
    n_kernels++;
}
static CUresult load(const void *host, CUfunction *function)
{
    CUresult result = CUDA_SUCCESS;
    struct kernel *k = slot_of(host);

    if (!k->host)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (!k->image->library)
        result = DRIVER(cuLibraryLoadData)(&k->image->library, k->image->data, NULL, NULL, 0, NULL, NULL, 0);
    if (!result && !k->kernel)
        result = DRIVER(cuLibraryGetKernel)(&k->kernel, k->image->library, KERNEL);
    pthread_mutex_unlock(&lock);
    *function = (CUfunction)k->kernel;
    return result;
}
static __thread struct { dim3 grid, block; size_t shared; void *stream; } pushed[8];
static __thread int depth;
API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
    pushed[depth].grid = grid, pushed[depth].block = block;
    pushed[depth].shared = shared, pushed[depth++].stream = stream;
    return 0;
}
API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    depth--;
    *grid = pushed[depth].grid, *block = pushed[depth].block;
    *shared = pushed[depth].shared, *(void **)stream = pushed[depth].stream;
    return 0;
}
API cudaError_t cudaLaunchKernel(const void *host, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s)
{
    CUfunction f;
    CUresult result;
    READY();
    if ((result = load(host, &f)))
        return done(result);
    return done(DRIVER(cuLaunchKernel)(f, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, s, args, NULL));
}
API cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *host, void **args)
{
    return cudaLaunchKernel(host, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream);
}
API cudaError_t cudaFuncSetAttribute(const void *f, enum cudaFuncAttribute a, int v) { (void)f, (void)a, (void)v; return 0; }
API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f)
{
    (void)f;
    memset(a, 0, sizeof *a);
    a->maxThreadsPerBlock = 1024;
    a->numRegs = 32;
    a->binaryVersion = a->ptxVersion = 90;
    return 0;
}
API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int block, size_t shared, unsigned flags)
{
    (void)f, (void)block, (void)shared, (void)flags;
    *n = 2;
    return 0;
}

/* ---- imported, and never reached by what is recorded
 * ------------------------------------------------- */
static cudaError_t absent(const char *name)
{
    fprintf(stderr, "record: this runtime has no %s\n", name);
    return last_error = cudaErrorNotSupported;
}
API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t g, const char *p, unsigned f) { (void)g, (void)p, (void)f; return absent(__func__); }
API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *h, cudaEvent_t e) { (void)h, (void)e; return absent(__func__); }
API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *e, cudaIpcEventHandle_t h) { (void)e, (void)h; return absent(__func__); }
API cudaError_t cudaMemcpy2DAsync(void *d, size_t dp, const void *s, size_t sp, size_t w, size_t h, enum cudaMemcpyKind k, cudaStream_t st)
{
    (void)d, (void)dp, (void)s, (void)sp, (void)w, (void)h, (void)k, (void)st;
    return absent(__func__);
}
API cudaError_t cudaMemcpyPeerAsync(void *d, int dd, const void *s, int sd, size_t n, cudaStream_t st) { (void)d, (void)dd, (void)s, (void)sd, (void)n, (void)st; return absent(__func__); }
API cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t c, void *p, unsigned f) { (void)s, (void)c, (void)p, (void)f; return absent(__func__); }

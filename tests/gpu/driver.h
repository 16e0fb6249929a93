/* The driver for the programs of tests/gpu: found by dlopen as every program finds it, so that the same
 * binary runs on a real GPU, on the fake one, and with the interposer in front of either. */
#ifndef ALNAIR_TESTS_GPU_DRIVER_H
#define ALNAIR_TESTS_GPU_DRIVER_H

#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB (1ull << 20)

static void *driver_find(const char *name)
{
    static void *library;
    void *found;

    if (!library && !(library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL))) {
        fprintf(stderr, "no libcuda.so.1: %s\n", dlerror());
        exit(77);
    }
    if (!(found = dlsym(library, name))) {
        fprintf(stderr, "this driver has no %s\n", name);
        exit(77);
    }
    return found;
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* F(cuMemAlloc)(&p, n): the variant that cuda.h's macros name. */
#define F(name) ({ \
    static __typeof__(&name) function_; \
    if (!function_) *(void **)&function_ = driver_find(TEXT(name)); \
    function_; })

static inline void must(CUresult result, const char *what)
{
    if (result) {
        fprintf(stderr, "%s gave %d\n", what, (int)result);
        exit(1);
    }
}
#define MUST(name, ...) must(F(name)(__VA_ARGS__), #name)

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Kernels whose names tell their nominal time, as the fake reads it; on a GPU each runs the number
 * of dependent steps that it is given. Real work, not a spin on a clock: a clock goes on while the
 * kernel does not, when contexts take turns, and the share would look fairer than it is. */
static const char kernels_ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
#define KERNEL(name) \
    ".visible .entry " name "(.param .u64 steps, .param .u64 out) {\n" \
    ".reg .pred %p;\n.reg .b64 %n, %x, %o;\n" \
    "ld.param.u64 %n, [steps];\nld.param.u64 %o, [out];\nmov.u64 %x, 1;\n" \
    "loop:\nsetp.eq.u64 %p, %n, 0;\n@%p bra done;\n" \
    "mad.lo.u64 %x, %x, 6364136223846793005, 1442695040888963407;\n" \
    "sub.u64 %n, %n, 1;\nbra loop;\n" \
    "done:\nsetp.eq.u64 %p, %x, 0;\n@%p st.global.u64 [%o], %x;\nret;\n}\n"
    KERNEL("empty") KERNEL("ns_4000") KERNEL("ns_1000000") KERNEL("ns_5000000") KERNEL("ns_50000000");

struct gpu {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    double steps_per_ns; /* measured; 0 where kernels need no steps (the fake) */
};

static inline void gpu_open(struct gpu *gpu, int with_kernels)
{
    must(F(cuInit)(0), "cuInit");
    MUST(cuDeviceGet, &gpu->device, 0);
    MUST(cuDevicePrimaryCtxRetain, &gpu->context, gpu->device);
    MUST(cuCtxSetCurrent, gpu->context);
    gpu->steps_per_ns = 0;
    if (with_kernels)
        MUST(cuModuleLoadData, &gpu->module, kernels_ptx);
}

static inline CUfunction gpu_kernel(struct gpu *gpu, const char *name)
{
    CUfunction f;
    must(F(cuModuleGetFunction)(&f, gpu->module, name), name);
    return f;
}

static inline CUresult gpu_launch(struct gpu *gpu, CUfunction f, uint64_t ns, CUstream stream)
{
    uint64_t steps = (uint64_t)((double)ns * gpu->steps_per_ns), out = 0;
    void *arguments[] = {&steps, &out};
    return F(cuLaunchKernel)(f, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
}

/* How many steps take a nanosecond: a long kernel, timed by events, thrice; the fastest counts. */
static inline void gpu_calibrate(struct gpu *gpu)
{
    CUfunction f = gpu_kernel(gpu, "ns_5000000");
    CUevent from, to;
    float ms, best = 0;
    const double trial = 0.5;

    MUST(cuEventCreate, &from, 0);
    MUST(cuEventCreate, &to, 0);
    gpu->steps_per_ns = trial;
    for (int i = 0; i < 4; i++) {
        MUST(cuEventRecord, from, NULL);
        must(gpu_launch(gpu, f, 5000000, NULL), "launch");
        MUST(cuEventRecord, to, NULL);
        MUST(cuEventSynchronize, to);
        MUST(cuEventElapsedTime, &ms, from, to);
        if (i && (!best || ms < best))
            best = ms;
    }
    gpu->steps_per_ns = trial * 5.0 / best;
    MUST(cuEventDestroy, from);
    MUST(cuEventDestroy, to);
}
#endif

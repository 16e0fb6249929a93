/* A small program of the CUDA driver API: takes memory of a GPU and keeps it busy for a while.
 *
 *   cuda_load [--memory-mib N] [--seconds S] [--kernel-us T]
 *
 * Prints one line of JSON at the end; ends with 1 and a line on stderr where a call fails. The
 * kernel spins for T microseconds, on a real GPU by its clock; the fake GPU goes by its name. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *driver;

static void *function(const char *name)
{
    void *found = dlsym(driver, name);
    if (!found) {
        fprintf(stderr, "cuda_load: the driver has no %s\n", name);
        exit(1);
    }
    return found;
}

static void check(CUresult result, const char *call)
{
    if (result == CUDA_SUCCESS)
        return;
    const char *name = NULL;
    ((CUresult (*)(CUresult, const char **))function("cuGetErrorName"))(result, &name);
    fprintf(stderr, "cuda_load: %s: %s (%d)\n", call, name ? name : "unknown error", (int)result);
    exit(1);
}

/* The name, and the version of its entry point, as cuda.h has it. */
#define TEXT(name) #name
#define ENTRY(name) TEXT(name)
#define CALL(name, ...) check(((__typeof__(&name))function(ENTRY(name)))(__VA_ARGS__), #name)

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double option(int argc, char **argv, const char *name, double otherwise)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], name))
            return atof(argv[i + 1]);
    return otherwise;
}

int main(int argc, char **argv)
{
    double memory_mib = option(argc, argv, "--memory-mib", 256);
    double seconds = option(argc, argv, "--seconds", 1);
    long kernel_ns = (long)(option(argc, argv, "--kernel-us", 1000) * 1000);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "cuda_load: there is no GPU driver here: %s\n", dlerror());
        return 1;
    }
    int gpus = 0;
    char model[96] = "";
    CUdevice device;
    CUcontext context;
    CUdeviceptr memory;
    CUmodule module;
    CUfunction kernel;
    CALL(cuInit, 0);
    CALL(cuDeviceGetCount, &gpus);
    CALL(cuDeviceGet, &device, 0);
    CALL(cuDeviceGetName, model, sizeof model, device);
    CALL(cuDevicePrimaryCtxRetain, &context, device);
    CALL(cuCtxSetCurrent, context);
    CALL(cuMemAlloc, &memory, (size_t)(memory_mib * 1048576));
    char name[32], code[640];
    snprintf(name, sizeof name, "ns_%ld", kernel_ns);
    snprintf(code, sizeof code,
             ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry %s()\n{\n"
             ".reg .u64 %%t<3>;\n.reg .pred %%p;\nmov.u64 %%t1, %%globaltimer;\n"
             "again:\nmov.u64 %%t2, %%globaltimer;\nsub.u64 %%t2, %%t2, %%t1;\n"
             "setp.lt.u64 %%p, %%t2, %ld;\n@%%p bra again;\nret;\n}\n",
             name, kernel_ns);
    CALL(cuModuleLoadData, &module, code);
    CALL(cuModuleGetFunction, &kernel, module, name);
    long launched = 0;
    double began = now();
    do {
        CALL(cuLaunchKernel, kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
        if (++launched % 16 == 0)
            CALL(cuCtxSynchronize, );
    } while (now() - began < seconds);
    CALL(cuCtxSynchronize, );
    printf("{\"gpus\": %d, \"model\": \"%s\", \"memory_mib\": %.0f, \"kernels\": %ld, \"seconds\": "
           "%.3f}\n",
           gpus, model, memory_mib, launched, now() - began);
    return 0;
}
